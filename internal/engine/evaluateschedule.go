package engine

import (
	"context"
	"math"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
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

// prepareEvaluateSchedule tabulates a schedule.
func (e *Engine) prepareEvaluateSchedule(_ context.Context, req api.EvaluateSchedule) (*api.Job, error) {
	s, err := e.catalog.ScheduleNamed(req.Schedule)
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
	schema := api.Schema{Columns: scheduleColumns, Metadata: metadata("EvaluateSchedule", req,
		"schedule", s.Name, "basis", family.Basis, "k", itoa(family.K))}
	rows := grid.size
	bytes, err := e.price(schema, rows)
	if err != nil {
		return nil, err
	}
	return &api.Job{Schema: schema, Rows: rows, Bytes: bytes, Run: func(ctx context.Context,
		emit func(api.Event) error,
	) error {
		return tabulate(ctx, s.Schedule, labels, grid, emit)
	}}, nil
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
	own := points{times: func(row, j int) []float64 { tau, _ := s.At(row, j).Knots(); return tau }}
	for _, label := range labels {
		row, err := s.Row(int(label))
		if err != nil {
			return own, err
		}
		for j := range s.J() {
			own.size += int64(len(own.times(row, j)))
		}
	}
	return own, nil
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

// tabulate emits the table in batches.
func tabulate(
	ctx context.Context, s *schedule.Schedule, labels []int32, grid points, emit func(api.Event) error,
) error {
	const most = 40_000 // rows of 40 bytes
	var done int64
	out := newTable(most)
	g, gdot := make([]float64, s.J()), make([]float64, s.J())
	for _, label := range labels {
		row, err := s.Row(int(label))
		if err != nil {
			return err
		}
		for j := range s.J() {
			for _, t := range grid.times(row, j) {
				s.Eval(row, t, g, gdot)
				out.add(label, int32(j), t, g[j], gdot[j])
				if out.full() {
					done += int64(most)
					if err := emit(api.Event{Batch: out.take(), Meta: api.Done(done, grid.size)}); err != nil {
						return err
					}
					if err := ctx.Err(); err != nil {
						return err
					}
				}
			}
		}
	}
	if b := out.take(); b.Rows > 0 {
		return emit(api.Event{Batch: b, Meta: api.Done(grid.size, grid.size)})
	}
	return nil
}

// table collects rows of scheduleColumns.
type table struct {
	most             int
	label, subspace  []int32
	t, g, gdot, root []float64
}

func newTable(most int) *table { return &table{most: most} }

func (b *table) add(label, subspace int32, t, g, gdot float64) {
	b.label, b.subspace = append(b.label, label), append(b.subspace, subspace)
	b.t, b.g, b.gdot, b.root = append(b.t, t), append(b.g, g), append(b.gdot, gdot), append(b.root, math.Sqrt(g))
}

func (b *table) full() bool { return len(b.t) >= b.most }

func (b *table) take() *api.Batch {
	out := &api.Batch{Rows: len(b.t), Cols: []any{b.label, b.subspace, b.t, b.g, b.gdot, b.root}}
	*b = table{most: b.most}
	return out
}
