package schedules

import (
	"context"
	"math"
	"slices"
	"strconv"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/reply"
	"github.com/anisoflight/anisoflight/schedule"
)

var scheduleColumns = []api.Column{
	{Name: "label", Type: api.Int32},
	{Name: "subspace", Type: api.Int32},
	{Name: "t", Type: api.Float64},
	{Name: "g", Type: api.Float64},
	{Name: "gdot", Type: api.Float64},
	{Name: "sigma", Type: api.Float64},
}

// Table is a schedule to be tabulated.
type Table struct {
	Schema api.Schema
	Rows   int64

	schedule *schedule.Schedule
	labels   []int32
	grid     points
}

// NewTable checks a request for the table of a schedule.
func NewTable(c *catalog.Catalog, req api.EvaluateSchedule) (*Table, error) {
	s, err := c.ScheduleNamed(req.Schedule)
	if err != nil {
		return nil, err
	}
	labels, err := labelsOf(req.Labels, s.Schedule)
	if err != nil {
		return nil, err
	}
	grid, err := gridOf(req, s.Schedule, labels)
	if err != nil {
		return nil, err
	}
	family := s.Family()
	schema := api.Schema{Columns: scheduleColumns, Metadata: reply.Metadata("EvaluateSchedule", req,
		"schedule", s.Name, "basis", family.Basis, "k", strconv.Itoa(family.K))}
	return &Table{Schema: schema, Rows: grid.size, schedule: s.Schedule, labels: labels, grid: grid}, nil
}

// points are the times at which the paths of a table are evaluated.
type points struct {
	times func(row, subspace int) []float64
	size  int64 // of the whole table
}

// gridOf finds the times asked for: the same for every path, or each path's own knots.
func gridOf(req api.EvaluateSchedule, s *schedule.Schedule, labels []int32) (points, error) {
	if !req.Knots {
		times, err := timesOf(req, s.T())
		return points{func(int, int) []float64 { return times }, int64(len(labels)) * int64(s.J()) * int64(len(times))}, err
	}
	knots := points{times: func(row, j int) []float64 { tau, _ := s.At(row, j).Knots(); return tau }}
	for _, label := range labels {
		row, err := s.Row(int(label))
		if err != nil {
			return knots, err
		}
		for j := range s.J() {
			knots.size += int64(len(knots.times(row, j)))
		}
	}
	return knots, nil
}

// timesOf lists the times asked for, in order.
func timesOf(req api.EvaluateSchedule, T float64) ([]float64, error) {
	if req.T == nil {
		times := make([]float64, req.Points)
		for i := range times {
			times[i] = T * (float64(i) / float64(req.Points-1))
		}
		return times, nil
	}
	times := slices.Sorted(slices.Values(req.T))
	if len(times) == 0 {
		return nil, api.Errorf(api.BadRequest, "t must not be empty")
	}
	if first, last := times[0], times[len(times)-1]; first < 0 || last > T*(1+1e-6) {
		return nil, api.Errorf(api.BadRequest, "t must lie in 0 … %g", T)
	}
	for i := range times {
		times[i] = min(times[i], T)
	}
	return times, nil
}

// labelsOf lists the labels of the rows asked for, in order: −1 for a shared schedule, whatever is asked.
func labelsOf(asked []int32, s *schedule.Schedule) ([]int32, error) {
	var labels []int32
	for _, l := range s.Labels() {
		labels = append(labels, int32(l))
	}
	if labels == nil {
		return []int32{-1}, nil
	}
	if asked != nil {
		labels = asked
		for _, l := range labels {
			if _, err := s.Row(int(l)); err != nil {
				return nil, err
			}
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(labels))), nil
}

// Run emits the table in batches.
func (t *Table) Run(ctx context.Context, emit func(api.Event) error) error {
	const most = 40_000 // rows of 40 bytes
	s, grid := t.schedule, t.grid
	var done int64
	out := reply.NewRows(scheduleColumns)
	g, gdot := make([]float64, s.J()), make([]float64, s.J())
	for _, label := range t.labels {
		row, err := s.Row(int(label))
		if err != nil {
			return err
		}
		for j := range s.J() {
			for _, time := range grid.times(row, j) {
				s.Eval(row, time, g, gdot)
				out.Add([]int{int(label), j}, []float64{time, g[j], gdot[j], math.Sqrt(g[j])})
				if out.Len() == most {
					done += int64(most)
					if err := emit(api.Event{Batch: out.Batch(), Meta: api.Done(done, grid.size)}); err != nil {
						return err
					}
					out = reply.NewRows(scheduleColumns)
					if err := ctx.Err(); err != nil {
						return err
					}
				}
			}
		}
	}
	if out.Len() > 0 {
		return emit(api.Event{Batch: out.Batch(), Meta: api.Done(grid.size, grid.size)})
	}
	return nil
}
