package schedules

import (
	"context"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/internal/search"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/solver/gaussian"
	"github.com/anisoflight/anisoflight/train/data"
)

// Bench measures solvers on schedules, on the Gaussian of a data set, or of each class if the schedule has a row for
// each. It checks every combination before it reads the data.
func (k *Maker) Bench(_ context.Context, req api.BenchSchedule) (*api.Job, error) {
	d, err := k.Catalog.Dataset(req.Dataset)
	if err != nil {
		return nil, err
	}
	if err := CheckMeasurable(req.Dataset, d.Height(), d.Width(), d.Channels()); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(req.Solvers, search.ByCoordinate) {
		return nil, api.Errorf(api.BadRequest, "solvers must not name local or fitted, whose coefficients are a network's")
	}
	images := map[int]int{-1: d.Len()} // by label
	for i := range d.Len() {
		images[int(d.Label(i))]++
	}
	var schedules []catalog.Schedule
	var rows int64
	for _, ref := range req.Schedules {
		s, err := k.Catalog.ScheduleNamed(ref)
		if err != nil {
			return nil, err
		}
		if s, err = k.benchable(s, req.Dataset, d); err != nil {
			return nil, err
		}
		for _, label := range rowLabels(s) {
			if images[label] == 0 {
				return nil, api.Errorf(api.BadRequest, "The data set %q has no image of class %d", req.Dataset, label)
			}
		}
		for _, name := range req.Solvers {
			for _, nfe := range req.NFE {
				if _, err := solver.New(solver.Settings{Solver: name, NFE: nfe}, s.Schedule, 0); err != nil {
					return nil, err
				}
			}
		}
		schedules = append(schedules, s)
		rows += api.SaturatingProduct(int64(s.J()+1), int64(len(rowLabels(s)))) * int64(len(req.Solvers)*len(req.NFE))
	}
	schema := tables.SchemaOf[api.BenchRow](tables.Metadata("BenchSchedule", req))
	return tables.NewPricedJob(k.MaxBytes, schema, rows, func(ctx context.Context, emit func(api.Event) error) error {
		return runBench(ctx, d, schedules, req, emit)
	})
}

// benchable returns a schedule with its basis. It refuses a basis or a start that the data's Gaussian cannot take.
func (k *Maker) benchable(s catalog.Schedule, dataset string, d *data.Dataset) (_ catalog.Schedule, err error) {
	if s.Start != nil {
		if units, start := d.Normalization(), s.Start.Settings().Units; !units.Equal(start) {
			return s, api.Errorf(api.BadRequest, "The start of the schedule %q is made for data with the normalization %v, "+
				"those of %q are seen with %v", s.Name, start, dataset, units)
		}
	}
	if s.Basis, err = k.Catalog.BasisFor(s.Family(), d.Height(), d.Width(), s.Basis, nil); err != nil {
		return s, err
	}
	if kind := s.Basis.Kind(); kind != basis.KindNone && kind != basis.KindDCT {
		return s, api.Errorf(api.BadRequest, "The schedule %q has subspaces that mix frequencies", s.Name).
			WithHint("Bench schedules on the bases none and dct.")
	}
	return s, nil
}

// rowLabels returns the labels of a schedule's rows: −1 alone if all classes share one.
func rowLabels(s catalog.Schedule) []int {
	if labels := s.Labels(); labels != nil {
		return labels
	}
	return []int{-1}
}

// runBench measures the data and the samplers, and sends the rows.
func runBench(ctx context.Context, d *data.Dataset, schedules []catalog.Schedule, req api.BenchSchedule,
	emit func(api.Event) error,
) error {
	// fails when ctx has ended, and then measuring does
	progress := api.ThrottledProgress(func(m api.Meta) { _ = emit(api.Event{Meta: m}) })
	var labels []int
	for _, s := range schedules {
		labels = append(labels, rowLabels(s)...)
	}
	spectra, err := search.Spectra(ctx, d, labels, progress)
	if err != nil {
		return err
	}
	var out []api.BenchRow
	for i, s := range schedules {
		for k, name := range req.Solvers {
			for _, nfe := range req.NFE {
				for _, label := range rowLabels(s) {
					if err := ctx.Err(); err != nil {
						return err
					}
					report, plan, err := benchAlong(s, spectra[label], solver.Settings{Solver: name, NFE: nfe}, label)
					if err != nil {
						return err
					}
					out = append(out, reportRows(api.BenchRow{
						Schedule: int32(i), Solver: int32(k), NFE: int32(plan.NFE), Steps: int32(plan.Steps()), Label: int32(label),
					}, report)...)
				}
			}
		}
	}
	return tables.SendRows(ctx, slices.Values(out), int64(len(out)), emit)
}

// benchAlong runs a sampler along a schedule on the Gaussian of a label, from the schedule's start if it has one.
func benchAlong(s catalog.Schedule, law *gaussian.Spectrum, set solver.Settings, label int,
) (report *gaussian.Report, plan *solver.Plan, err error) {
	if s.Start != nil {
		if law, err = law.StartedFrom(s.Start.Law(label)); err != nil {
			return nil, nil, err
		}
	}
	if plan, err = s.Plan(set, label, 0, 0, 0); err != nil {
		return nil, nil, err
	}
	report, err = law.Bench(s.Basis, plan)
	return report, plan, err
}

// reportRows returns the rows of a report, for the whole and for each band. common has their common numbers.
func reportRows(common api.BenchRow, report *gaussian.Report) (rows []api.BenchRow) {
	add := func(subspace, dims int, variance float64, d gaussian.Distance) {
		row := common
		row.Subspace, row.Dims, row.Variance = int32(subspace), int32(dims), variance
		row.W2, row.Spread, row.Shift, row.Noise = d.W2, d.Spread, d.Shift, d.Noise
		rows = append(rows, row)
	}
	dims := 0
	for _, band := range report.Bands {
		dims += band.Dims
	}
	add(-1, dims, 1, report.Distance)
	for j, band := range report.Bands {
		add(j, band.Dims, band.Variance, band.Distance)
	}
	return rows
}
