package schedules

import (
	"context"
	"errors"
	"math"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/solver/gaussian"
	"github.com/anisoflight/anisoflight/schedule/start"
)

// gaussian makes the schedule of the noise levels that suit a solver on a data set's own Gaussian. It needs no device.
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
	if err := checkMeasurable(req.Dataset, d); err != nil {
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
	made := &newSchedule{}
	if made.origin, err = k.origin(req.Dataset, nil); err != nil {
		return nil, err
	}
	report := api.Sparsely(progress)
	spectra, err := spectraOf(ctx, d, []int{-1}, report)
	if err != nil {
		return nil, err
	}
	law := spectra[-1]
	if req.Start != nil {
		if made.parts.Start, err = measureStart(ctx, req.Dataset, d, *req.Start, report); err != nil {
			return nil, err
		}
		if law, err = law.From(made.parts.Start.Law(start.Shared)); err != nil {
			return nil, err
		}
	}
	nodes, err := gaussian.Optimize(ctx, law, b, gaussian.Settings{
		Sampler: sampler, T: req.T, G0: req.G0, Family: family, Progress: report,
	})
	if settings, ok := errors.AsType[*solver.Error](err); ok && settings.Field == "steps" { // evaluations, in the request
		err = &solver.Error{Field: "nfe", Msg: settings.Msg, TooLarge: settings.TooLarge}
	}
	if err != nil {
		return nil, err
	}
	made.parts.Schedule = nodes.Schedule.WithSampler(schedule.Sampler{
		Solver: nodes.Sampler.Solver, Order: nodes.Sampler.Order, NFE: nodes.Sampler.NFE,
	})
	made.bench, err = benchOf(law, b, sampler, nodes)
	return made, err
}

// benchOf compares the nodes with the same solver on EDM's noise levels: on the grid edm or polynomial, whichever is
// closer to the Gaussian.
func benchOf(
	law *gaussian.Spectrum, b *basis.Basis, sampler solver.Settings, nodes *gaussian.Nodes,
) (*api.Bench, error) {
	edm, err := catalog.EDM(nodes.Schedule.T())
	if err != nil {
		return nil, err
	}
	split, err := edm.Expand(nodes.Schedule.Family(), nil, b.J())
	if err != nil {
		return nil, err
	}
	bench := &api.Bench{
		Solver:   nodes.Sampler.Solver,
		Nodes:    api.BenchSampler{Steps: nodes.Sampler.Steps, NFE: nodes.Sampler.NFE, W2: nodes.Report.W2},
		Baseline: api.BenchSampler{W2: math.Inf(1)},
	}
	var baseline *gaussian.Report
	for _, grid := range []string{solver.GridEDM, solver.GridPolynomial} {
		onGrid := sampler
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
		if report.W2 < bench.Baseline.W2 {
			baseline = report
			bench.Baseline = api.BenchSampler{Grid: grid, Steps: onGrid.Steps, NFE: onGrid.NFE, W2: report.W2}
		}
	}
	for j, band := range nodes.Report.Bands {
		bench.Bands = append(bench.Bands, api.BenchBand{
			Dims: band.Dims, Variance: band.Variance, Nodes: band.W2,
			Baseline: baseline.Bands[j].W2,
		})
	}
	return bench, nil
}
