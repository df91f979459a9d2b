package solver

import (
	"math"
	"testing"

	"github.com/anisoflight/anisoflight/schedule"
)

// Steps of very different lengths make the equations of UniPC's weights as good as singular, but not their solution.
// The weights of the images still add up to what a constant image needs, x′ = U′/U x + (1 − U′/U) m.
func TestUniPCOnUnevenSteps(t *testing.T) {
	p := path(t, []float64{0, 100}, []float64{1e-6, 100})
	for name, sigma := range map[string][]float64{
		"short after long": {10, 1, 1 - 1e-9, 1 - 3e-9, 0.1, 0.01, 1e-3},
		"shorter still":    {10, 1, 1 - 1e-13, 0.01, 0.01 - 1e-13, 1e-3},
		"long after short": {5, 5 - 1e-8, 5 - 2e-8, 5 - 3e-8, 1e-3},
	} {
		for _, variant := range []string{BH1, BH2} {
			grid := Grid{Kind: GridSigma, Sigma: sigma}
			plan, err := New(Settings{Solver: "unipc", Order: 3, Variant: variant, Grid: grid}, schedule.Isotropic(p), 0)
			if err != nil {
				t.Errorf("%s, %s: %v", name, variant, err)
				continue
			}
			for i, s := range plan.Stages {
				var sum, size float64
				for _, v := range s.Beta[0] {
					sum += v
					size += math.Abs(v)
				}
				if want := 1 - s.Alpha[0]; !(math.Abs(sum-want) <= 1e-6*size) {
					t.Errorf("%s, %s: the weights of step %d add up to %g, want %g", name, variant, i, sum, want)
				}
			}
		}
	}
}

// Nodes that no solver can tell apart are refused.
func TestUniPCOnEqualSteps(t *testing.T) {
	p := path(t, []float64{0, 100}, []float64{1e-6, 100})
	near := math.Nextafter(1, 0)
	for _, sigma := range [][]float64{{10, 1, near, math.Nextafter(near, 0), 0.1, 1e-3}, {10, 1, near, 0.5, 1e-3}} {
		plan, err := New(Settings{Solver: "unipc", Order: 3, Grid: Grid{Kind: GridSigma, Sigma: sigma}},
			schedule.Isotropic(p), 0)
		if err != nil {
			t.Log(err)
			continue
		}
		for i, s := range plan.Stages {
			if l := (link{alpha: s.Alpha[0], beta: s.Beta[0]}); !l.finite() {
				t.Errorf("step %d of %v: %v", i, sigma, s.Beta[0])
			}
		}
	}
}
