package schedule

import (
	"errors"
	"testing"
)

// anisotropic returns a schedule of two different paths.
func anisotropic(t *testing.T) *Schedule {
	t.Helper()
	a := path(t, []float64{0, 0.9, 2.5, 3, 10}, []float64{1e-6, 1e-3, 0.1, 0.9, 100})
	b := path(t, []float64{0, 4, 10}, []float64{1e-5, 0.02, 100})
	s, err := New(Family{Basis: "dct", K: 4}, nil, [][]*Path{{a, b}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEnergyBelongsToTheSchedule(t *testing.T) {
	s := anisotropic(t)
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
