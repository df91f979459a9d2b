package search

import (
	"context"
	"math"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/solver/gaussian"
)

// GaussianLevels are noise levels that suit a solver on a Gaussian, beside EDM's.
type GaussianLevels struct {
	*gaussian.Nodes
	// EDM is the same solver on EDM's levels: on the grid edm or polynomial, whichever is closer to the Gaussian.
	EDM        *gaussian.Report
	EDMSampler solver.Settings // resolved
}

// Levels chooses the noise levels of a solver on the Gaussian of some images, in the subspaces of a basis.
func Levels(ctx context.Context, law *gaussian.Spectrum, b *basis.Basis, set gaussian.Settings,
) (*GaussianLevels, error) {
	nodes, err := gaussian.Optimize(ctx, law, b, set)
	if err != nil {
		return nil, err
	}
	out := &GaussianLevels{Nodes: nodes}
	edm, err := schedule.EDM(nodes.Schedule.T(), schedule.DefaultG0)
	if err != nil {
		return nil, err
	}
	split, err := edm.Expand(nodes.Schedule.Family(), nil, b.J())
	if err != nil {
		return nil, err
	}
	least := math.Inf(1)
	for _, grid := range []string{solver.GridEDM, solver.GridPolynomial} {
		onGrid := set.Sampler
		onGrid.Grid.Kind = grid
		if onGrid, err = onGrid.Resolve(); err != nil {
			return nil, err
		}
		plan, err := solver.New(onGrid, split, 0)
		if err != nil {
			return nil, err
		}
		report, err := law.Bench(b, plan)
		if err != nil {
			return nil, err
		}
		if report.W2 < least {
			least, out.EDM, out.EDMSampler = report.W2, report, onGrid
		}
	}
	return out, nil
}
