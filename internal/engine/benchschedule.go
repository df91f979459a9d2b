package engine

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/kernels/solver"
	"github.com/anisoflight/anisoflight/kernels/solver/gaussian"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
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
	schedules []benched
}

// benched is a schedule with the basis that splits it.
type benched struct {
	*schedule.Schedule
	basis *basis.Basis
}

// prepareBenchSchedule checks every combination before the data is looked at.
func (e *Engine) prepareBenchSchedule(_ context.Context, body json.RawMessage) (*Job, error) {
	b := &bench{}
	if err := api.Decode(body, &b.req); err != nil {
		return nil, err
	}
	var err error
	if b.data, err = e.datasetNamed(b.req.Dataset); err != nil {
		return nil, err
	}
	if err := checkMeasurable(b.req.Dataset, b.data); err != nil {
		return nil, err
	}
	rows := int64(0)
	for _, ref := range b.req.Schedules {
		s, err := e.benchedSchedule(ref, b.req, b.data)
		if err != nil {
			return nil, err
		}
		for _, name := range b.req.Solvers {
			for _, nfe := range b.req.NFE {
				if _, err := b.plan(s, name, nfe, 0); err != nil {
					return nil, err
				}
			}
		}
		b.schedules = append(b.schedules, s)
		rows += times(int64(s.J()+1), int64(len(b.labels(s)))) * int64(len(b.req.Solvers)*len(b.req.NFE))
	}
	schema := api.Schema{Columns: benchColumns, Metadata: metadata("BenchSchedule", b.req)}
	bytes, err := e.price(schema, rows)
	if err != nil {
		return nil, err
	}
	return &Job{Schema: schema, Rows: rows, Bytes: bytes, Run: b.run}, nil
}

// benchedSchedule finds a schedule, seen by the bands of the request where it has one subspace.
func (e *Engine) benchedSchedule(ref api.ScheduleRef, req api.BenchSchedule, d *data.Dataset) (out benched, err error) {
	s, err := e.scheduleNamed(ref)
	if err != nil {
		return out, err
	}
	out.Schedule = s.Schedule
	family := s.Family()
	if s.J() == 1 && req.Basis != "none" {
		family.Basis, family.K, family.Cuts = req.Basis, req.K, req.Cuts
	}
	if out.basis, err = e.basisFor(family, d.Height(), d.Width(), s.basis, nil); err != nil {
		return out, err
	}
	if kind := out.basis.Kind(); kind != basis.KindNone && kind != basis.KindDCT {
		return out, api.Errorf(api.BadRequest, "The schedule %q has subspaces that mix frequencies; the data's Gaussian serves none and dct", s.name)
	}
	if out.basis.J() == s.J() {
		return out, nil
	}
	if s.J() != 1 {
		return out, api.Errorf(api.BadRequest, "The schedule %q has %d subspaces, its basis splits images into %d", s.name, s.J(), out.basis.J())
	}
	// The same path in each subspace is the isotropic schedule, seen by subspace.
	paths := make([][]*schedule.Path, s.Rows())
	for r := range paths {
		paths[r] = slices.Repeat([]*schedule.Path{s.At(r, 0)}, out.basis.J())
	}
	out.Schedule, err = schedule.New(family, s.Labels(), paths)
	return out, err
}

// labels are the classes whose Gaussians a schedule is run on; −1 stands for the whole data set.
func (b *bench) labels(s benched) []int {
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

func (b *bench) plan(s benched, name string, nfe, row int) (*solver.Plan, error) {
	g := b.req.Grid
	return solver.New(solver.Settings{
		Solver: name, NFE: nfe, Grid: solver.Grid{Kind: g.Kind, SigmaMin: g.SigmaMin, SigmaMax: g.SigmaMax, Rho: g.Rho},
	}, s.Schedule, row)
}

func (b *bench) run(ctx context.Context, emit func(api.Event) error) error {
	progress := sparsely(func(m api.Meta) { _ = emit(api.Event{Meta: m}) }) // fails when ctx has ended, and then measuring does
	laws := map[int]*gaussian.Spectrum{}
	out := benchRows{}
	for i, s := range b.schedules {
		for _, label := range b.labels(s) {
			if laws[label] == nil {
				law, err := measure(ctx, b.data, label, progress)
				if err != nil {
					return err
				}
				laws[label] = law
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
					report, err := laws[label].Bench(s.basis, plan)
					if err != nil {
						return err
					}
					out.add(i, k, label, plan, report)
				}
			}
		}
	}
	n := int64(len(out.ints[0]))
	return emit(api.Event{Batch: out.batch(), Meta: api.Done(n, n)})
}

// benchRows are the columns, those of int32 and those of float64.
type benchRows struct {
	ints   [7][]int32
	floats [5][]float64
}

// add writes the whole and each band of a report.
func (r *benchRows) add(schedule, solver, label int, p *solver.Plan, report *gaussian.Report) {
	steps, dims := 0, 0
	for _, stage := range p.Stages {
		steps = max(steps, stage.Step+1)
	}
	for _, band := range report.Bands {
		dims += band.Dims
	}
	row := func(subspace, dims int, variance float64, d gaussian.Distance) {
		for c, v := range []int{schedule, solver, p.NFE, steps, label, subspace, dims} {
			r.ints[c] = append(r.ints[c], int32(v))
		}
		for c, v := range []float64{variance, d.W2, d.Spread, d.Shift, d.Noise} {
			r.floats[c] = append(r.floats[c], v)
		}
	}
	row(-1, dims, 1, report.Distance)
	for j, band := range report.Bands {
		row(j, band.Dims, band.Variance, band.Distance)
	}
}

func (r *benchRows) batch() *api.Batch {
	out := &api.Batch{Rows: len(r.ints[0])}
	for _, v := range r.ints {
		out.Cols = append(out.Cols, v)
	}
	for _, v := range r.floats {
		out.Cols = append(out.Cols, v)
	}
	return out
}
