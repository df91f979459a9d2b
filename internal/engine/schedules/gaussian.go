package schedules

import (
	"context"
	"errors"
	"fmt"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/search"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/solver/gaussian"
	"github.com/anisoflight/anisoflight/schedule/start"
)

// gaussian makes the schedule of the noise levels that are best for a solver on the Gaussian of a data set.
func (k *Maker) gaussian(ctx context.Context, req api.GaussianSchedule, progress func(api.Meta)) (*newSchedule, error) {
	d, err := k.Catalog.SeenBy(req.Model, req.Dataset)
	if err != nil {
		return nil, err
	}
	if req.Model != "" {
		m, err := k.Catalog.Model(req.Model)
		if err != nil {
			return nil, err
		}
		if req.T == 0 {
			req.T = m.Shape.Range.T()
		}
		req.G0 = m.G0(req.G0)
	}
	if err := CheckMeasurable(req.Dataset, d.Height(), d.Width(), d.Channels()); err != nil {
		return nil, err
	}
	family := schedule.Family{Basis: req.Basis, K: req.K, Cuts: req.Cuts}
	b, err := k.Catalog.BasisFor(family, d.Height(), d.Width(), nil, nil)
	if err != nil {
		return nil, err
	}
	sampler := solver.Settings{Solver: req.Solver, NFE: req.NFE}
	if _, err := sampler.Resolve(); err != nil { // before the work
		return nil, err
	}
	out := newOrigin(req.Dataset, d, nil, nil)
	report := api.ThrottledProgress(progress)
	spectra, err := search.Spectra(ctx, d, []int{-1}, report)
	if err != nil {
		return nil, err
	}
	law := spectra[-1]
	if req.Start != nil {
		if out.parts.Start, err = measureStart(ctx, req.Dataset, d, *req.Start, report); err != nil {
			return nil, err
		}
		if law, err = law.StartedFrom(out.parts.Start.Law(start.Shared)); err != nil {
			return nil, err
		}
	}
	levels, err := search.Levels(ctx, law, b, gaussian.Settings{
		Sampler: sampler, T: req.T, G0: req.G0, Family: family, Progress: report,
	})
	if settings, ok := errors.AsType[*solver.Error](err); ok && settings.Field == "steps" { // evaluations, in the request
		err = &solver.Error{Field: "nfe", Msg: settings.Msg, TooLarge: settings.TooLarge}
	}
	if err != nil {
		return nil, err
	}
	out.parts.Schedule = levels.Schedule.WithSampler(schedule.Sampler{
		Solver: levels.Sampler.Solver, Order: levels.Sampler.Order, NFE: levels.Sampler.NFE,
	})
	out.bench = benchOf(levels)
	edm := fmt.Sprintf("EDM's levels (grid %s) from the same start", levels.EDM.Sampler.Grid.Kind)
	out.origin.Summary = worth(req.Solver, levels.Sampler.NFE, levels.Report.W2/levels.EDM.W2, edm, byLaw)
	return out, nil
}

// benchOf compares the levels with EDM's.
func benchOf(l *search.GaussianLevels) *api.Bench {
	bench := &api.Bench{
		Solver: l.Sampler.Solver,
		Nodes:  api.BenchSampler{Steps: l.Sampler.Steps, NFE: l.Sampler.NFE, W2: l.Report.W2},
		Baseline: api.BenchSampler{
			Grid: l.EDM.Sampler.Grid.Kind, Steps: l.EDM.Sampler.Steps, NFE: l.EDM.Sampler.NFE, W2: l.EDM.W2,
		},
	}
	for j, band := range l.Report.Bands {
		bench.Bands = append(bench.Bands, api.BenchBand{
			Dims: band.Dims, Variance: band.Variance, Nodes: band.W2, Baseline: l.EDM.Bands[j].W2,
		})
	}
	return bench
}
