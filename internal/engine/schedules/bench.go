package schedules

import (
	"context"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/solver/gaussian"
	"github.com/anisoflight/anisoflight/train/data"
)

var benchColumns = []api.Column{
	{Name: "schedule", Type: api.Int32},
	{Name: "solver", Type: api.Int32},
	{Name: "nfe", Type: api.Int32},
	{Name: "steps", Type: api.Int32},
	{Name: "label", Type: api.Int32},
	{Name: "subspace", Type: api.Int32},
	{Name: "dims", Type: api.Int32},
	{Name: "variance", Type: api.Float64},
	{Name: "w2_squared", Type: api.Float64},
	{Name: "spread", Type: api.Float64},
	{Name: "shift", Type: api.Float64},
	{Name: "noise", Type: api.Float64},
}

// bench is a BenchSchedule request with everything it needs.
type bench struct {
	req       api.BenchSchedule
	data      *data.Dataset
	schedules []catalog.Schedule         // each with the basis that splits it
	spectra   map[int]*gaussian.Spectrum // measured so far, by class; −1 for all data
}

// Bench runs solvers on schedules on a data set's own Gaussian. It checks every combination before it looks at the
// data.
func (k *Maker) Bench(_ context.Context, req api.BenchSchedule) (*api.Job, error) {
	b := &bench{req: req, spectra: map[int]*gaussian.Spectrum{}}
	var err error
	if b.data, err = k.Catalog.SeenBy(req.Model, req.Dataset); err != nil {
		return nil, err
	}
	if err := checkMeasurable(req.Dataset, b.data); err != nil {
		return nil, err
	}
	var rows int64
	for _, ref := range req.Schedules {
		s, err := k.benchedSchedule(ref, req, b.data)
		if err != nil {
			return nil, err
		}
		for _, name := range req.Solvers {
			for _, nfe := range req.NFE {
				if _, err := b.plan(s, name, nfe, 0); err != nil {
					return nil, err
				}
			}
		}
		if err := b.checkLabels(s); err != nil {
			return nil, err
		}
		b.schedules = append(b.schedules, s)
		rows += api.Times(int64(s.J()+1), int64(len(b.labels(s)))) * int64(len(req.Solvers)*len(req.NFE))
	}
	schema := api.Schema{Columns: benchColumns, Metadata: tables.Metadata("BenchSchedule", req)}
	return tables.Priced(k.MaxBytes, schema, rows, b.run)
}

// benchedSchedule finds a schedule, seen by the bands of the request if it has one subspace, with the start that the
// request means.
func (k *Maker) benchedSchedule(ref api.ScheduleRef, req api.BenchSchedule, d *data.Dataset) (catalog.Schedule, error) {
	s, err := k.Catalog.ScheduleNamed(ref)
	if err != nil {
		return s, err
	}
	if s.Start, err = s.StartFor(req.Start); err != nil {
		return s, err
	}
	if s.Start != nil {
		if own, start := d.Normalization(), s.Start.Settings().Units; !own.Equal(start) {
			return s, api.Errorf(api.BadRequest, "The start of the schedule %q is made for data with the normalization %v, "+
				"those of %q are seen with %v", s.Name, start, req.Dataset, own).
				WithHint("Name the model that both are for, or set start to standard.")
		}
	}
	family := s.Family()
	if s.J() == 1 && req.Basis != "none" {
		family.Basis, family.K, family.Cuts = req.Basis, req.K, req.Cuts
	}
	if s.Basis, err = k.Catalog.BasisFor(family, d.Height(), d.Width(), s.Basis, nil); err != nil {
		return s, err
	}
	if kind := s.Basis.Kind(); kind != basis.KindNone && kind != basis.KindDCT {
		return s, api.Errorf(api.BadRequest, "The schedule %q has subspaces that mix frequencies", s.Name).
			WithHint("Bench schedules on the bases none and dct.")
	}
	if s.Basis.J() == s.J() {
		return s, nil
	}
	if s.J() != 1 {
		return s, api.Errorf(api.BadRequest, "The schedule %q has %d subspaces, its basis splits images into %d", s.Name,
			s.J(), s.Basis.J())
	}
	s.Schedule, err = inSubspaces(s.Schedule, family, s.Basis.J())
	return s, err
}

// inSubspaces returns an isotropic schedule seen by subspace: the same path in each.
func inSubspaces(s *schedule.Schedule, family schedule.Family, n int) (*schedule.Schedule, error) {
	paths := make([][]*schedule.Path, s.Rows())
	for row := range paths {
		paths[row] = slices.Repeat([]*schedule.Path{s.At(row, 0)}, n)
	}
	return schedule.New(family, s.Labels(), paths)
}

// labels are the classes whose Gaussians a schedule is run on; −1 stands for the whole data set.
func (b *bench) labels(s catalog.Schedule) []int {
	if labels := s.Labels(); labels != nil {
		return labels
	}
	if !b.req.PerClass {
		return []int{-1}
	}
	var labels []int
	for label := range b.data.Classes() {
		labels = append(labels, label)
	}
	return labels
}

// checkLabels refuses classes that have no images.
func (b *bench) checkLabels(s catalog.Schedule) error {
	labels := b.labels(s)
	if len(labels) == 0 {
		return api.Errorf(api.BadRequest, "The data set %q has no labels to bench classes by", b.req.Dataset)
	}
	count := map[int]int{-1: b.data.Len()}
	for i := range b.data.Len() {
		count[int(b.data.Label(i))]++
	}
	for _, label := range labels {
		if count[label] == 0 {
			return api.Errorf(api.BadRequest, "The data set %q has no image of class %d", b.req.Dataset, label)
		}
	}
	return nil
}

func (b *bench) plan(s catalog.Schedule, name string, nfe, row int) (*solver.Plan, error) {
	g := b.req.Grid
	set := s.Complete(solver.Settings{
		Solver: name, NFE: nfe, StatisticsRow: row,
		Grid: solver.Grid{Kind: g.Kind, SigmaMin: g.SigmaMin, SigmaMax: g.SigmaMax, Rho: g.Rho},
	})
	return solver.New(set, s.Schedule, row)
}

// run measures and sends the rows.
func (b *bench) run(ctx context.Context, emit func(api.Event) error) error {
	// fails when ctx has ended, and then measuring does
	progress := api.Sparsely(func(m api.Meta) { _ = emit(api.Event{Meta: m}) })
	out := tables.NewRows(benchColumns)
	for i, s := range b.schedules {
		laws := map[int]*gaussian.Spectrum{}
		for _, label := range b.labels(s) {
			var err error
			if laws[label], err = b.law(ctx, s, label, progress); err != nil {
				return err
			}
		}
		for k, name := range b.req.Solvers {
			for _, nfe := range b.req.NFE {
				for _, label := range b.labels(s) {
					if err := ctx.Err(); err != nil {
						return err
					}
					row, err := s.Row(label)
					if err != nil {
						return err
					}
					plan, err := b.plan(s, name, nfe, row)
					if err != nil {
						return err
					}
					report, err := laws[label].Bench(s.Basis, plan)
					if err != nil {
						return err
					}
					addReport(out, []int{i, k, plan.NFE, plan.Steps(), label}, report)
				}
			}
		}
	}
	return out.Send(emit)
}

// law returns the Gaussian of a class, or of all data (−1), with sampling started where the schedule starts.
func (b *bench) law(
	ctx context.Context, s catalog.Schedule, label int, report func(done, total int),
) (*gaussian.Spectrum, error) {
	law := b.spectra[label]
	if law == nil {
		var err error
		if law, err = measured(ctx, b.data, label, report, gaussian.Measure[float32]); err != nil {
			return nil, err
		}
		b.spectra[label] = law
	}
	if s.Start == nil {
		return law, nil
	}
	return law.From(s.Start.Law(label))
}

// addReport writes the whole and each band of a report, after the numbers that they have in common.
func addReport(rows *tables.Rows, common []int, report *gaussian.Report) {
	row := func(subspace, dims int, variance float64, d gaussian.Distance) {
		rows.Add(slices.Concat(common, []int{subspace, dims}), []float64{variance, d.W2, d.Spread, d.Shift, d.Noise})
	}
	dims := 0
	for _, band := range report.Bands {
		dims += band.Dims
	}
	row(-1, dims, 1, report.Distance)
	for j, band := range report.Bands {
		row(j, band.Dims, band.Variance, band.Distance)
	}
}
