package mixture

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	"gonum.org/v1/gonum/mat"

	"github.com/anisoflight/anisoflight/internal/devicetest"
	"github.com/anisoflight/anisoflight/kernels/autodiff"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// TestInverseDerivatives compares S^{-1}, ln|S| and their first and second
// derivatives along a direction E with the closed forms
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
	dev := devicetest.Open(t)
	p, err := dev.Program(context.Background(), "test inverse", func(g *graph.Graph) []*graph.Node {
		shape := shapes.Make(dtypes.Float64, 1, d, d)
		s, e, probe := graph.Parameter(g, "s", shape), graph.Parameter(g, "e", shape), graph.Parameter(g, "probe", shape)
		along := graph.Parameter(g, "along", shapes.Make(dtypes.Float64))
		x, ld := inverse(graph.Add(s, graph.Mul(e, along)))
		value := graph.ReduceAllSum(graph.Mul(x, probe))
		logDet := graph.ReduceAllSum(ld)
		first := graph.Gradient(value, along)[0]
		firstLog := graph.Gradient(logDet, along)[0]
		return []*graph.Node{
			value, first, graph.Gradient(first, along)[0],
			logDet, firstLog, graph.Gradient(firstLog, along)[0],
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	var args []device.Arg
	for _, m := range []*mat.Dense{&s, &e, probe} {
		b, err := dev.Upload(m.RawMatrix().Data, 1, d, d)
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, device.Use(b))
	}
	zero, err := dev.Upload([]float64{0})
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.Run(context.Background(), append(args, device.Use(zero))...)
	if err != nil {
		t.Fatal(err)
	}

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
		got := make([]float64, 1)
		if err := out[i].Read(got); err != nil {
			t.Fatal(err)
		}
		if math.Abs(got[0]-want[i]) > 1e-10*(1+math.Abs(want[i])) {
			t.Errorf("%s is %.15g, want %.15g", name, got[0], want[i])
		}
	}
}
