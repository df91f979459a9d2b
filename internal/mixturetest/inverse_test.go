package mixturetest

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/graph"
	"gonum.org/v1/gonum/mat"

	"github.com/anisoflight/anisoflight/internal/devicetest"
	"github.com/anisoflight/anisoflight/kernels/autodiff"
)

// TestInverseDerivatives compares S^{-1}, ln|S| and their first and second derivatives along a direction E with the
// closed forms
//
//	(S^{-1})′ = −X E X      (S^{-1})″ = 2 X E X E X
//	(ln|S|)′  = tr X E      (ln|S|)″  = −tr X E X E,      X = S^{-1}.
func TestInverseDerivatives(t *testing.T) {
	const d = 5
	rng := rand.New(rand.NewPCG(1, 0))
	matrix := func() *mat.Dense {
		m := mat.NewDense(d, d, nil)
		for i := range d {
			for j := range d {
				m.Set(i, j, rng.NormFloat64())
			}
		}
		return m
	}
	root, r := matrix(), matrix()
	var s, e mat.Dense
	s.Mul(root, root.T())
	for i := range d {
		s.Set(i, i, s.At(i, i)+0.5)
	}
	e.Add(r, r.T())
	probe := matrix()

	autodiff.Install()
	input := func(m *mat.Dense) devicetest.Input {
		return devicetest.Input{Flat: m.RawMatrix().Data, Dims: []int{1, d, d}}
	}
	out := devicetest.Compute(t, devicetest.Open(t), "", func(in []*graph.Node) []*graph.Node {
		s, e, probe, along := in[0], in[1], in[2], in[3]
		x, ld := inverse(graph.Add(s, graph.Mul(e, along)))
		value := graph.ReduceAllSum(graph.Mul(x, probe))
		logDet := graph.ReduceAllSum(ld)
		first := graph.Gradient(value, along)[0]
		firstLog := graph.Gradient(logDet, along)[0]
		return []*graph.Node{
			value, first, graph.Gradient(first, along)[0],
			logDet, firstLog, graph.Gradient(firstLog, along)[0],
		}
	}, input(&s), input(&e), input(probe), devicetest.Input{Flat: []float64{0}})

	var x, xe, xex, xexex mat.Dense
	if err := x.Inverse(&s); err != nil {
		t.Fatal(err)
	}
	xe.Mul(&x, &e)
	xex.Mul(&xe, &x)
	xexex.Mul(&xe, &xex)
	inner := func(a mat.Matrix) (sum float64) {
		for i := range d {
			for j := range d {
				sum += a.At(i, j) * probe.At(i, j)
			}
		}
		return sum
	}
	var square mat.Dense
	square.Mul(&xe, &xe)
	want := []float64{
		inner(&x), -inner(&xex), 2 * inner(&xexex), math.Log(mat.Det(&s)), mat.Trace(&xe),
		-mat.Trace(&square),
	}
	for i, name := range []string{"inverse", "inverse′", "inverse″", "ln det", "ln det′", "ln det″"} {
		got := out[i]
		if math.Abs(got[0]-want[i]) > 1e-10*(1+math.Abs(want[i])) {
			t.Errorf("%s is %.15g, want %.15g", name, got[0], want[i])
		}
	}
}
