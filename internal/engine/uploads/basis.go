package uploads

import (
	"context"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// basisCost is the number of bytes of memory that the upload takes for each one on the wire.
const basisCost = 3

// Basis opens the upload of a basis, whose vectors it collects by label.
func (u *Uploads) Basis(_ context.Context, req api.PutBasis, in api.Schema) (*api.Upload, error) {
	err := tables.CheckColumns(in, []api.Column{
		{Name: "label", Type: api.Int32},
		{Name: "vector", Type: api.Float64, Kind: api.Tensor},
	}, nil)
	if err != nil {
		return nil, err
	}
	v := in.Columns[in.Index("vector")]
	if len(v.Shape) != 2 || v.Len() == 0 || len(v.DimNames) > 0 && !slices.Equal(v.DimNames, []string{"H", "W"}) {
		return nil, api.Errorf(api.BadTensor, "Column \"vector\" has shape %v and dim_names %v", v.Shape, v.DimNames).
			WithHint("Its shape is [H, W], its dim_names [\"H\",\"W\"].")
	}
	var rows int64
	vectors := map[int][][]float64{}
	write := func(b api.Batch) error {
		values := api.ColumnOf[float64](in, b, "vector")
		if err := tables.Finite("vector", values, v.Len()); err != nil {
			return err
		}
		labels, err := tables.Int32s(in, b, "label", rows)
		if err != nil {
			return err
		}
		for i, label := range labels {
			vectors[int(label)] = append(vectors[int(label)], slices.Clone(values[i*v.Len():(i+1)*v.Len()]))
		}
		rows += int64(b.Rows)
		return nil
	}
	commit := func() (int64, error) {
		if rows == 0 {
			return 0, api.Errorf(api.BadTensor, "The basis has no vectors")
		}
		b, err := basis.Dense(v.Shape[0], v.Shape[1], vectors)
		if err != nil {
			return 0, err
		}
		return rows, u.Catalog.StoreBasis(req.Name, b, req.Replace)
	}
	return u.bound(api.Upload{Write: write, Commit: commit}, in, req.Rows, u.MaxBytes, basisCost),
		u.Catalog.FreeBasis(req.Name, req.Replace)
}
