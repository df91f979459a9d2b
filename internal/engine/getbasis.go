package engine

import (
	"context"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/reply"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// prepareBasis reads the vectors of a basis back.
func (e *Engine) prepareBasis(_ context.Context, req api.Basis) (*api.Job, error) {
	b, err := e.vectorsOf(req)
	if err != nil {
		return nil, err
	}
	n := b.H() * b.W()
	schema := api.Schema{
		Columns: []api.Column{
			{Name: "label", Type: api.Int32},
			{Name: "vector", Type: api.Float64, Kind: api.Tensor, Shape: []int{b.H(), b.W()}, DimNames: []string{"H", "W"}},
		},
		Metadata: reply.Metadata("Basis", req),
	}
	labels := b.Classes()
	if labels == nil {
		labels = []int{basis.Shared}
	}
	total := int64(len(labels)) * int64(b.K())
	size, err := e.price(schema, total)
	if err != nil {
		return nil, err
	}
	return &api.Job{Schema: schema, Rows: total, Bytes: size, Run: func(ctx context.Context,
		emit func(api.Event) error,
	) error {
		var done int64
		most := reply.RowsPerBatch(schema, api.DefaultBatchBytes)
		for _, label := range labels {
			v, err := b.Vectors(label)
			if err != nil {
				return err
			}
			for from := 0; from < len(v)/n; from += most {
				if err := ctx.Err(); err != nil {
					return err
				}
				rows := min(most, len(v)/n-from)
				labels := make([]int32, rows)
				for i := range labels {
					labels[i] = int32(label)
				}
				done += int64(rows)
				batch := &api.Batch{Rows: rows, Cols: []any{labels, v[from*n : (from+rows)*n]}}
				if err := emit(api.Event{Batch: batch, Meta: api.Done(done, total)}); err != nil {
					return err
				}
			}
		}
		return nil
	}}, nil
}

// vectorsOf finds the basis that a request means: a stored one, or the one that travels with a schedule.
func (e *Engine) vectorsOf(req api.Basis) (*basis.Basis, error) {
	if req.Basis != "" {
		return e.catalog.Basis(req.Basis)
	}
	s, err := e.catalog.ScheduleNamed(req.Schedule)
	if err != nil {
		return nil, err
	}
	if s.Basis != nil {
		return s.Basis, nil
	}
	name := s.Family().Basis
	if basis.ByFormula(name) {
		return nil, api.Errorf(api.BadRequest, "The schedule %q has the basis %s, which is known by its name", s.Name, name)
	}
	return e.catalog.Basis(name)
}
