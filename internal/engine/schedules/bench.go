package schedules

import (
	"context"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/reply"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/solver/gaussian"
	"github.com/anisoflight/anisoflight/schedule/start"
	"github.com/anisoflight/anisoflight/train/data"
)

// Bench is a BenchSchedule request with everything it needs.
type Bench struct {
	Rows int64 // of the reply

	req       api.BenchSchedule
	data      *data.Dataset
	schedules []benched
	spectra   map[int]*gaussian.Spectrum // measured so far, by class; −1 for all data
}

// benched is a schedule with the basis that splits it.
type benched struct {
	*schedule.Schedule
	Basis *basis.Basis
	Start *start.Start // nil for noise alone
	// settings hold what the schedule carries for local and fitted
	settings solver.Settings
}

// Bench checks every combination of a request before the data is looked at.
func (k *Maker) Bench(req api.BenchSchedule) (*Bench, error) {
	b := &Bench{req: req, spectra: map[int]*gaussian.Spectrum{}}
	var err error
	if b.data, err = k.Catalog.SeenBy(req.Model, req.Dataset); err != nil {
		return nil, err
	}
	if err := checkMeasurable(req.Dataset, b.data); err != nil {
		return nil, err
	}
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
		b.Rows += api.Times(int64(s.J()+1), int64(len(b.labels(s)))) * int64(len(req.Solvers)*len(req.NFE))
	}
	return b, nil
}

// benchedSchedule finds a schedule, seen by the bands of the request where it has one subspace.
func (k *Maker) benchedSchedule(ref api.ScheduleRef, req api.BenchSchedule, d *data.Dataset) (out benched, err error) {
	s, err := k.Catalog.ScheduleNamed(ref)
	if err != nil {
		return out, err
	}
	out.Schedule = s.Schedule
	out.settings = s.Complete(out.settings)
	from, err := s.StartFor(req.Start)
	if err != nil {
		return out, err
	}
	if from != nil {
		if own, of := d.Normalization(), from.Settings().Units; !own.Equal(of) {
			return out, api.Errorf(api.BadRequest, "The start of the schedule %q is made for data with the normalization %v, "+
				"those of %q are seen with %v", s.Name, of, req.Dataset, own).
				WithHint("Name the model that both are for, or set start to standard.")
		}
		out.Start = from.Start
	}
	family := s.Family()
	if s.J() == 1 && req.Basis != "none" {
		family.Basis, family.K, family.Cuts = req.Basis, req.K, req.Cuts
	}
	if out.Basis, err = k.Catalog.BasisFor(family, d.Height(), d.Width(), s.Basis, nil); err != nil {
		return out, err
	}
	if kind := out.Basis.Kind(); kind != basis.KindNone && kind != basis.KindDCT {
		return out, api.Errorf(api.BadRequest, "The schedule %q has subspaces that mix frequencies", s.Name).
			WithHint("Bench schedules on the bases none and dct.")
	}
	if out.Basis.J() == s.J() {
		return out, nil
	}
	if s.J() != 1 {
		return out, api.Errorf(api.BadRequest, "The schedule %q has %d subspaces, its basis splits images into %d", s.Name,
			s.J(), out.Basis.J())
	}
	// The same path in each subspace is the isotropic schedule, seen by subspace.
	paths := make([][]*schedule.Path, s.Rows())
	for r := range paths {
		paths[r] = slices.Repeat([]*schedule.Path{s.At(r, 0)}, out.Basis.J())
	}
	out.Schedule, err = schedule.New(family, s.Labels(), paths)
	return out, err
}

// labels are the classes whose Gaussians a schedule is run on; −1 stands for the whole data set.
func (b *Bench) labels(s benched) []int {
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
func (b *Bench) checkLabels(s benched) error {
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

func (b *Bench) plan(s benched, name string, nfe, row int) (*solver.Plan, error) {
	g := b.req.Grid
	set := s.settings
	set.Solver, set.NFE, set.StatisticsRow = name, nfe, row
	set.Grid = solver.Grid{Kind: g.Kind, SigmaMin: g.SigmaMin, SigmaMax: g.SigmaMax, Rho: g.Rho}
	return solver.New(set, s.Schedule, row)
}

// Run measures and sends the rows, whose columns are BenchColumns.
func (b *Bench) Run(ctx context.Context, emit func(api.Event) error) error {
	// fails when ctx has ended, and then measuring does
	progress := api.Sparsely(func(m api.Meta) { _ = emit(api.Event{Meta: m}) })
	out := reply.NewRows(BenchColumns)
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
					addReport(out, i, k, label, plan, report)
				}
			}
		}
	}
	n := int64(out.Len())
	return emit(api.Event{Batch: out.Batch(), Meta: api.Done(n, n)})
}

// law returns the Gaussian of a class, or of all data (−1), with sampling started where the schedule starts.
func (b *Bench) law(
	ctx context.Context, s benched, label int, report func(done, total int),
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

// BenchColumns are the columns of a bench's rows.
var BenchColumns = []api.Column{
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

// addReport writes the whole and each band of a report.
func addReport(rows *reply.Rows, schedule, solver, label int, p *solver.Plan, report *gaussian.Report) {
	steps, dims := 0, 0
	for _, stage := range p.Stages {
		steps = max(steps, stage.Step+1)
	}
	for _, band := range report.Bands {
		dims += band.Dims
	}
	row := func(subspace, dims int, variance float64, d gaussian.Distance) {
		rows.Add([]int{schedule, solver, p.NFE, steps, label, subspace, dims},
			[]float64{variance, d.W2, d.Spread, d.Shift, d.Noise})
	}
	row(-1, dims, 1, report.Distance)
	for j, band := range report.Bands {
		row(j, band.Dims, band.Variance, band.Distance)
	}
}
