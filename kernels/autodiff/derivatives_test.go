package autodiff_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/kernels/autodiff"
	"github.com/anisoflight/anisoflight/kernels/device"
)

type node = graph.Node

// order is the highest derivative that is checked.
const order = 3

// derivatives checks the derivatives of y = op(x₁, x₂, ...) up to the third on
// one backend, in float64. With the scalar f = Σᵢ wᵢ sin(yᵢ + 1) and a fixed
// direction z, let
//
//	G₁ = ∇f,  G_{k+1} = ∇⟨G_k, z⟩
//
// Every derivative is a symmetric tensor, so along x(ε) = x + εz
//
//	⟨G₁, z⟩ = df/dε,  G_{k+1} = dG_k/dε  at ε = 0
//
// where the right-hand sides are central differences of order four.
func derivatives(t *testing.T, dev *device.Device, key string, sizes [][]int, op func(x []*node) *node) {
	t.Helper()
	autodiff.Install()
	rng := rand.New(rand.NewPCG(7, 11))
	x, z := make([][]float64, len(sizes)), make([][]float64, len(sizes))
	for i, dims := range sizes {
		n := shapes.Make(dtypes.Float64, dims...).Size()
		x[i], z[i] = uniform(rng, n), uniform(rng, n)
	}

	program, err := dev.Program(context.Background(), key, func(g *graph.Graph) []*node {
		in, dir := make([]*node, len(sizes)), make([]*node, len(sizes))
		for i, dims := range sizes {
			in[i] = graph.Parameter(g, string(rune('a'+i)), shapes.Make(dtypes.Float64, dims...))
			dir[i] = graph.Const(g, z[i])
			dir[i] = graph.Reshape(dir[i], dims...)
		}
		y := op(in)
		w := graph.Const(g, uniform(rand.New(rand.NewPCG(3, 5)), y.Shape().Size()))
		f := graph.ReduceAllSum(graph.Mul(graph.Reshape(w, y.Shape().Dimensions...), graph.Sin(graph.AddScalar(y, 1))))
		out := []*node{f}
		for range order {
			grads := graph.Gradient(f, in...)
			out = append(out, grads...)
			f = graph.ScalarZero(g, dtypes.Float64)
			for i, d := range grads {
				f = graph.Add(f, graph.ReduceAllSum(graph.Mul(d, dir[i])))
			}
		}
		return out
	})
	if err != nil {
		t.Fatal(err)
	}

	// at returns f, G₁, ..., G_order at x + εz, each G as one vector.
	at := func(eps float64) [][]float64 {
		args := make([]device.Arg, len(x))
		for i := range x {
			moved := make([]float64, len(x[i]))
			for k := range moved {
				moved[k] = x[i][k] + eps*z[i][k]
			}
			b, err := dev.Upload(moved, sizes[i]...)
			if err != nil {
				t.Fatal(err)
			}
			args[i] = device.Use(b)
		}
		out, err := program.Run(context.Background(), args...)
		if err != nil {
			t.Fatal(err)
		}
		res := make([][]float64, order+1)
		for i, b := range out {
			v := make([]float64, b.Size())
			if err := b.Read(v); err != nil {
				t.Fatal(err)
			}
			k := (i + len(x) - 1) / len(x)
			res[k] = append(res[k], v...)
		}
		return res
	}

	const h = 2e-3
	here, p1, m1, p2, m2 := at(0), at(h), at(-h), at(2*h), at(-2*h)
	for k := range order {
		want := make([]float64, len(here[k]))
		for i := range want {
			want[i] = (8*(p1[k][i]-m1[k][i]) - (p2[k][i] - m2[k][i])) / (12 * h)
		}
		got := here[k+1]
		if k == 0 {
			dot, j := 0.0, 0
			for _, zi := range z {
				for _, v := range zi {
					dot += here[1][j] * v
					j++
				}
			}
			got = []float64{dot}
		}
		if e := distance(got, want); !(e < 1e-8) {
			t.Errorf("derivative %d: relative distance %.2g from central differences", k+1, e)
		}
	}
}

func uniform(rng *rand.Rand, n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = 2*rng.Float64() - 1
	}
	return v
}

func distance(a, b []float64) float64 {
	var d, n float64
	for i := range b {
		d += (a[i] - b[i]) * (a[i] - b[i])
		n += b[i] * b[i]
	}
	return math.Sqrt(d / n)
}
