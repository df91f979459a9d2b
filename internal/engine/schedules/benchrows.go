package schedules

import (
	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/reply"
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
