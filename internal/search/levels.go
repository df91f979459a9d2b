package search

import (
	"context"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/solver/gaussian"
)

// GaussianLevels are noise levels that suit a solver on a Gaussian, compared with EDM's.
type GaussianLevels struct {
	*gaussian.Nodes
	EDM EDMLevels // the same solver, to the same end
}

// Levels returns the noise levels that suit a solver on the Gaussian of some images, in the subspaces of a basis.
// Errors are those of gaussian.Optimize.
func Levels(ctx context.Context, law *gaussian.Spectrum, b *basis.Basis, set gaussian.Settings,
) (*GaussianLevels, error) {
	nodes, err := gaussian.Optimize(ctx, law, b, set)
	if err != nil {
		return nil, err
	}
	edm, err := OnEDM(law, b, nodes.Schedule.Family(), set.Sampler, schedule.DefaultG0, nodes.Schedule.T())
	return &GaussianLevels{Nodes: nodes, EDM: edm}, err
}

// EDMLevels are a sampler on EDM's levels, up to the variance T.
type EDMLevels struct {
	*gaussian.Report
	Sampler solver.Settings // resolved
	T       float64
}

// OnEDM returns the sampler on EDM's levels that is closest to a Gaussian in the subspaces of a family's basis, among
// the grids edm and polynomial from the variance g0 up to each of some ends.
func OnEDM(law *gaussian.Spectrum, b *basis.Basis, family schedule.Family, sampler solver.Settings, g0 float64,
	ends ...float64,
) (best EDMLevels, err error) {
	for _, T := range ends {
		edm, err := schedule.EDM(T, g0)
		if err != nil {
			return best, err
		}
		split, err := edm.Expand(family, nil, b.J())
		if err != nil {
			return best, err
		}
		for _, grid := range []string{solver.GridEDM, solver.GridPolynomial} {
			sampler.Grid.Kind = grid
			report, err := law.BenchSampler(b, sampler, split)
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
