package schedulecheck

import (
	"math"
	"testing"

	"github.com/anisoflight/anisoflight/internal/devicetest"
	"github.com/anisoflight/anisoflight/kernels"
)

// TestTheEstimatorPasses: with seeds that the bounds were not chosen by.
func TestTheEstimatorPasses(t *testing.T) {
	for seed := range uint64(2) {
		r, err := Run(t.Context(), devicetest.Open(t), Settings{Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range r.Rows {
			t.Logf("seed %d: %-40s %8.2g (bound %.2g)", seed, row.Name, row.Deviation, row.Bound)
			if !row.OK {
				t.Errorf("seed %d: %s deviates by %g, more than %g", seed, row.Name, row.Deviation, row.Bound)
			}
		}
		if !r.OK || len(r.Rows) != 12 {
			t.Errorf("seed %d: %+v", seed, r)
		}
	}
}

// TestWrongVariantsFail: every term left out, scaled, of the wrong sign or the wrong
// power of g, and a probe whose E zzᵀ is 1.2 I, is found.
func TestWrongVariantsFail(t *testing.T) {
	const weight, explicit, implicit1, implicit2, implicit3 = 0, 1, 2, 3, 4
	scaled := func(index int, by func(g, gdot float64) float64) func([]kernels.Part, []float64, []float64) {
		return func(parts []kernels.Part, g, gdot []float64) {
			for _, p := range parts {
				if p.Index != index {
					continue
				}
				for i := range p.A {
					p.A[i] *= by(g[i], gdot[i])
				}
			}
		}
	}
	lab, err := newLaboratory(devicetest.Open(t), Settings{Samples: 8192, FalseAlarm: 1e-4})
	if err != nil {
		t.Fatal(err)
	}
	defer lab.close()
	m, err := lab.measure(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r := lab.judge(m, func([]kernels.Part, []float64, []float64) {}); !r.OK {
		t.Fatalf("the right variant fails: %+v", r)
	}
	times := func(x float64) func(g, gdot float64) float64 { return func(_, _ float64) float64 { return x } }
	for name, spoil := range map[string]func([]kernels.Part, []float64, []float64){
		"without the weight by g": scaled(weight, times(0)),
		"without the weight by ġ": func(parts []kernels.Part, _, _ []float64) { clear(parts[0].B) },
		"without explicit":        scaled(explicit, times(0)),
		"without implicit 1":      scaled(implicit1, times(0)),
		"without implicit 2":      scaled(implicit2, times(0)),
		"without implicit 3":      scaled(implicit3, times(0)),
		"explicit's sign":         scaled(explicit, times(-1)),
		"implicit 1's sign":       scaled(implicit1, times(-1)),
		"implicit 2's sign":       scaled(implicit2, times(-1)),
		"implicit 3's sign":       scaled(implicit3, times(-1)),
		"probes too large":        scaled(implicit1, times(1.2)),
		"transport by g^{+1/2}":   scaled(implicit2, func(g, _ float64) float64 { return g }),
		"transport by g^{-1}":     scaled(implicit2, func(g, _ float64) float64 { return 1 / math.Sqrt(g) }),
		"implicit 3 by g^{-1/2}":  scaled(implicit3, func(g, _ float64) float64 { return math.Sqrt(g) }),
		"explicit by g^{+1/2}":    scaled(explicit, func(g, _ float64) float64 { return g }),
		"the weight without c+g":  scaled(weight, func(g, _ float64) float64 { return (1 / g) / (1/g + 1/(weightC+g)) }),
		"subspaces exchanged": func(parts []kernels.Part, _, _ []float64) {
			for _, p := range parts {
				for i := 0; i < len(p.A); i += subspaces {
					p.A[i], p.A[i+1] = p.A[i+1], p.A[i]
				}
			}
		},
	} {
		r := lab.judge(m, spoil)
		caught := 0
		for _, row := range r.Rows {
			if !row.OK {
				caught++
				t.Logf("%s: %s deviates by %.3g", name, row.Name, row.Deviation)
			}
		}
		if r.OK || caught == 0 {
			t.Errorf("%s: not found", name)
		}
	}
}

func TestBoundsAndScores(t *testing.T) {
	if z := normalBound(0.05); math.Abs(z-1.959963985) > 1e-8 {
		t.Errorf("two-sided bound of 5 %%: %v", z)
	}
	a, b := [][]float64{{1, 5}, {3, 5}, {5, 5}, {7, 6}}, [][]float64{{0, 5}, {0, 5}, {0, 5}, {0, 5}}
	// means 4 and 1/4; standard errors √(5/3) and 1/4·√(3/3)
	if s := score(a, b); math.Abs(s-4/math.Sqrt(5.0/3)) > 1e-12 {
		t.Errorf("score %v", s)
	}
	if s := score([][]float64{{math.NaN()}, {1}}, [][]float64{{0}, {0}}); !math.IsNaN(s) {
		t.Errorf("a score of NaN is %v", s)
	}
	if _, err := Run(t.Context(), nil, Settings{Samples: 3}); err == nil {
		t.Error("three samples are taken")
	}
}
