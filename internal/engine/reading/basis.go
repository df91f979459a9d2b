package reading

import (
	"context"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// Basis sends the vectors of a basis.
func (k *Reader) Basis(_ context.Context, req api.Basis) (*api.Job, error) {
	b, err := k.vectorsOf(req)
	if err != nil {
		return nil, err
	}
	schema := api.Schema{
		Columns: []api.Column{
			{Name: "label", Type: api.Int32},
			{Name: "vector", Type: api.Float64, Kind: api.Tensor, Shape: []int{b.H(), b.W()}, DimNames: []string{"H", "W"}},
		},
		Metadata: tables.Metadata("Basis", req),
	}
	labels := b.Classes()
	if labels == nil {
		labels = []int{basis.Shared}
	}
	n, size := len(labels)*b.K(), b.H()*b.W()
	return tables.Priced(k.MaxBytes, schema, int64(n), func(ctx context.Context, emit func(api.Event) error) error {
		return tables.SendInBatches(ctx, schema, n, emit, func(from, to int) ([]any, error) {
			var column []int32
			var vectors, ofLabel []float64
			for i := from; i < to; i++ {
				label, first := labels[i/b.K()], i%b.K()*size
				if ofLabel == nil || first == 0 {
					if ofLabel, err = b.Vectors(label); err != nil {
						return nil, err
					}
				}
				column, vectors = append(column, int32(label)), append(vectors, ofLabel[first:first+size]...)
			}
			return []any{column, vectors}, nil
		})
	})
}

// vectorsOf finds the basis that a request means: a stored one, or the one that travels with a schedule.
func (k *Reader) vectorsOf(req api.Basis) (*basis.Basis, error) {
	if req.Basis != "" {
		return k.Catalog.Basis(req.Basis)
	}
	s, err := k.Catalog.ScheduleNamed(req.Schedule)
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
	return k.Catalog.Basis(name)
}
