// Package gradcheck compares derivatives that graphs compute with central differences.
package gradcheck

import (
	"math/rand/v2"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"gonum.org/v1/gonum/floats"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/kernels/autodiff"
	"github.com/anisoflight/anisoflight/kernels/device"
)

const (
	order = 3    // highest derivative that is checked
	step  = 2e-3 // of the differences
	limit = 1e-8 // relative distance allowed
)

// Check compares the first three derivatives of y = op(x₁, x₂, ...) with central differences, in float64 on one device,
// where the xᵢ have the given sizes and entries uniform in (−1, 1). With the scalar f = Σᵢ wᵢ sin(yᵢ + 1) and a fixed
// direction z, let
//
//	G₁ = ∇f,  G_{k+1} = ∇⟨G_k, z⟩
//
// computed by reverse mode over reverse mode. Derivatives are symmetric, so along x(ε) = x + εz
//
//	⟨G₁, z⟩ = df/dε,  G_{k+1} = dG_k/dε  at ε = 0
//
// and the right-hand sides are differences of order four. key names op in the device's cache of programs.
func Check(t *testing.T, dev *device.Device, key string, sizes [][]int, op func(x []*graph.Node) *graph.Node) {
	t.Helper()
	autodiff.Install()
	rng := rand.New(rand.NewPCG(7, 11))
	x, z := make([][]float64, len(sizes)), make([][]float64, len(sizes))
	for i, dims := range sizes {
		n := shapes.Make(dtypes.Float64, dims...).Size()
		x[i], z[i] = uniform(rng, n), uniform(rng, n)
	}
	// at returns f, G₁, G₂, ... at x + εz, each G as one vector.
	at := func(eps float64) [][]float64 {
		inputs := make([]devicetest.Input, len(x))
		for i := range x {
			moved := floats.AddScaledTo(make([]float64, len(x[i])), x[i], eps, z[i])
			inputs[i] = devicetest.Input{Flat: moved, Dims: sizes[i]}
		}
		res := make([][]float64, order+1)
		for i, v := range devicetest.Compute(t, dev, "gradcheck "+key, func(in []*graph.Node) []*graph.Node {
			return draw(in, z, op)
		}, inputs...) {
			k := (i + len(x) - 1) / len(x)
			res[k] = append(res[k], v...)
		}
		return res
	}

	here, p1, m1, p2, m2 := at(0), at(step), at(-step), at(2*step), at(-2*step)
	for k := range order {
		want := make([]float64, len(here[k]))
		for i := range want {
			want[i] = (8*(p1[k][i]-m1[k][i]) - (p2[k][i] - m2[k][i])) / (12 * step)
		}
		got := here[k+1]
		if k == 0 {
			var dir []float64
			for _, zi := range z {
				dir = append(dir, zi...)
			}
			got = []float64{floats.Dot(here[1], dir)}
		}
		if e := floats.Distance(got, want, 2) / floats.Norm(want, 2); !(e < limit) {
			t.Errorf("derivative %d: relative distance %.2g from central differences, allowed %.2g", k+1, e, limit)
		}
	}
}

// draw returns f and the entries of G₁, ..., G_order.
func draw(in []*graph.Node, z [][]float64, op func(x []*graph.Node) *graph.Node) []*graph.Node {
	g, dir := in[0].Graph(), make([]*graph.Node, len(in))
	for i, x := range in {
		dir[i] = graph.Reshape(graph.Const(g, z[i]), x.Shape().Dimensions...)
	}
	y := op(in)
	w := graph.Const(g, uniform(rand.New(rand.NewPCG(3, 5)), y.Shape().Size()))
	f := graph.ReduceAllSum(graph.Mul(graph.Reshape(w, y.Shape().Dimensions...), graph.Sin(graph.AddScalar(y, 1))))
	out := []*graph.Node{f}
	for range order {
		grads := graph.Gradient(f, in...)
		out = append(out, grads...)
		f = graph.ScalarZero(g, dtypes.Float64)
		for i, d := range grads {
			f = graph.Add(f, graph.ReduceAllSum(graph.Mul(d, dir[i])))
		}
	}
	return out
}

func uniform(rng *rand.Rand, n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = 2*rng.Float64() - 1
	}
	return v
}
