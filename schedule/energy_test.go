package schedule

import (
	"errors"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/integrate/quad"
)

// anisotropic returns a schedule of two different paths.
func anisotropic(t *testing.T) *Schedule {
	t.Helper()
	a, err := NewPath([]float64{0, 0.9, 2.5, 3, 10}, []float64{1e-6, 1e-3, 0.1, 0.9, 100})
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewPath([]float64{0, 4, 10}, []float64{1e-5, 0.02, 100})
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(Family{Basis: "dct", K: 4}, nil, [][]*Path{{a, b}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The times cut ∫√(Σ_j ġ_j² F_j) dt into equal parts.
func TestGeodesicTimes(t *testing.T) {
	s, err := anisotropic(t).WithEnergy([][]*Density{{
		density(t, gaussianDensity(0.25, 1, 30, 1e-3, 10)), density(t, gaussianDensity(0.04, 1, 20, 3e-3, 10)),
	}})
	if err != nil {
		t.Fatal(err)
	}
	const n = 7
	times, err := s.GeodesicTimes(0, n)
	if err != nil {
		t.Fatal(err)
	}
	if times[0] != 0 || times[n] != s.T() || len(times) != n+1 {
		t.Fatalf("times %v", times)
	}
	f := s.Energy()[0]
	g, gdot := make([]float64, 2), make([]float64, 2)
	var parts []float64
	var total float64
	for i := 1; i <= n; i++ {
		// The speed jumps at the knots: no panel straddles one.
		edges := []float64{times[i-1], times[i]}
		for _, knot := range []float64{0.9, 2.5, 3, 4} {
			if times[i-1] < knot && knot < times[i] {
				edges = append(edges, knot)
			}
		}
		slices.Sort(edges)
		part := 0.0
		for e := 1; e < len(edges); e++ {
			const panels = 200
			at := func(k int) float64 { return edges[e-1] + (edges[e]-edges[e-1])*float64(k)/panels }
			for k := range panels {
				part += quad.Fixed(func(t float64) float64 {
					s.Eval(0, t, g, gdot)
					return math.Sqrt(gdot[0]*gdot[0]*f[0].At(g[0]) + gdot[1]*gdot[1]*f[1].At(g[1]))
				}, at(k), at(k+1), 6, nil, 0)
			}
		}
		parts = append(parts, part)
		total += part
	}
	for i, part := range parts {
		if math.Abs(part*n/total-1) > 1e-5 {
			t.Errorf("part %d is %v of %v", i, part, total)
		}
	}
}

// For one subspace the length is ∫√F dg whatever the path.
func TestGeodesicTimesIsotropic(t *testing.T) {
	d := density(t, gaussianDensity(0.25, 1, 30, 1e-3, 10))
	p := EDMTheta(32, 100, 1e-6).Path(100, 1e-6)
	s, err := Isotropic(p).WithEnergy([][]*Density{{d}})
	if err != nil {
		t.Fatal(err)
	}
	times, err := s.GeodesicTimes(0, 5)
	if err != nil {
		t.Fatal(err)
	}
	low := math.Log(1e-6)
	total := d.length(low, math.Log(100))
	for i, at := range times {
		if l := d.length(low, p.log(at)); math.Abs(l-total*float64(i)/5) > 1e-10*total {
			t.Errorf("time %d is at length %v of %v", i, l, total)
		}
	}
}

func TestEnergyBelongsToTheSchedule(t *testing.T) {
	s := anisotropic(t)
	if _, err := s.GeodesicTimes(0, 4); !errors.Is(err, ErrNoEnergy) {
		t.Errorf("error %v", err)
	}
	if s.Energy() != nil {
		t.Error("a schedule comes with densities")
	}
	d := density(t, gaussianDensity(1, 1, 5, 0.1, 10))
	for name, f := range map[string][][]*Density{
		"no rows": {}, "too many rows": {{d, d}, {d, d}}, "one subspace": {{d}}, "a gap": {{d, nil}},
	} {
		var bad *Error
		if _, err := s.WithEnergy(f); !errors.As(err, &bad) {
			t.Errorf("%s: %v", name, err)
		}
	}
	f := [][]*Density{{d, d}}
	with, err := s.WithEnergy(f)
	if err != nil {
		t.Fatal(err)
	}
	f[0][0] = nil
	with.Energy()[0][1] = nil
	if e := with.Energy(); e[0][0] != d || e[0][1] != d {
		t.Error("a caller's slice is shared")
	}
	if s.Energy() != nil {
		t.Error("WithEnergy changed its receiver")
	}
}
