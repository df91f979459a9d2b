package schedules

import (
	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/solver/gaussian"
)

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
