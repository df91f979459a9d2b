package schedules

import (
	"context"
	"math"
	"slices"
	"strconv"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
)

// Evaluate tabulates a schedule: at the same times for every path, or at each path's own knots.
func (k *Maker) Evaluate(_ context.Context, req api.EvaluateSchedule) (*api.Job, error) {
	s, err := k.Catalog.ScheduleNamed(req.Schedule)
	if err != nil {
		return nil, err
	}
	labels := rowLabels(s)
	if req.Labels != nil && s.Labels() != nil {
		labels = nil
		for _, l := range req.Labels {
			labels = append(labels, int(l))
		}
	}
	labels = slices.Compact(slices.Sorted(slices.Values(labels)))
	rows := make([]int, len(labels))
	for i, label := range labels {
		if rows[i], err = s.Row(label); err != nil {
			return nil, err
		}
	}
	var times []float64 // of all paths; nil: each its own
	if !req.Knots {
		if times, err = timesOf(req, s.T()); err != nil {
			return nil, err
		}
	}
	var size int64
	timesAt := func(row, j int) []float64 {
		if req.Knots {
			tau, _ := s.At(row, j).Knots()
			return tau
		}
		return times
	}
	for _, row := range rows {
		for j := range s.J() {
			size += int64(len(timesAt(row, j)))
		}
	}
	family := s.Family()
	schema := tables.SchemaOf[api.ScheduleRow](tables.Metadata("EvaluateSchedule", req,
		"schedule", s.Name, "basis", family.Basis, "k", strconv.Itoa(family.K)))
	return tables.NewPricedJob(k.MaxBytes, schema, size, func(ctx context.Context, emit func(api.Event) error) error {
		g, gdot := make([]float64, s.J()), make([]float64, s.J())
		return tables.SendRows(ctx, func(yield func(api.ScheduleRow) bool) {
			for i, row := range rows {
				for j := range s.J() {
					for _, t := range timesAt(row, j) {
						s.Eval(row, t, g, gdot)
						if !yield(api.ScheduleRow{
							Label: int32(labels[i]), Subspace: int32(j), T: t, G: g[j], Gdot: gdot[j], Sigma: math.Sqrt(g[j]),
						}) {
							return
						}
					}
				}
			}
		}, size, emit)
	})
}

// timesOf lists the requested times in order.
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

// rowLabels returns the labels of a schedule's rows: −1 alone if all classes share one.
func rowLabels(s catalog.Schedule) []int {
	if labels := s.Labels(); labels != nil {
		return labels
	}
	return []int{-1}
}
