package search

import (
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/solver/gaussian"
)

// EDMLevels are a sampler on EDM's levels, up to the variance T.
type EDMLevels struct {
	*gaussian.Report
	Sampler solver.Settings // resolved
	T       float64
}

// OnEDM returns the sampler on EDM's levels that is closest to a Gaussian, among the grids edm and polynomial from the
// variance g0 up to each of some ends.
func OnEDM(law *gaussian.Spectrum, sampler solver.Settings, g0 float64, ends ...float64) (best EDMLevels, err error) {
	for _, T := range ends {
		edm, err := schedule.EDM(T, g0)
		if err != nil {
			return best, err
		}
		for _, grid := range []string{solver.GridEDM, solver.GridPolynomial} {
			sampler.Grid.Kind = grid
			report, err := law.BenchSampler(basis.None(law.H, law.W), sampler, edm)
			if err != nil {
				return best, err
			}
			if best.Report == nil || report.W2 < best.W2 {
				best = EDMLevels{report, sampler, T}
			}
		}
	}
	best.Sampler, err = best.Sampler.Resolve()
	return best, err
}
