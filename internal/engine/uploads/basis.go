package uploads

import (
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/input"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// basisUpload collects the vectors of a basis by label.
type basisUpload struct {
	catalog *catalog.Catalog
	req     api.PutBasis
	in      api.Schema
	h, w    int
	rows    int64
	vectors map[int][][]float64
}

// Basis opens the upload of a basis.
func Basis(c *catalog.Catalog, budget *Budget, req api.PutBasis, in api.Schema) (api.Upload, error) {
	u := &basisUpload{catalog: c, req: req, in: in, vectors: map[int][][]float64{}}
	err := input.Want(in, []api.Column{
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
	u.h, u.w = v.Shape[0], v.Shape[1]
	return budget.bound(u, in, req.Rows, budget.Upload, basisCost), c.FreeBasis(u.req.Name, u.req.Replace)
}

// Write implements api.Upload.
func (u *basisUpload) Write(b api.Batch) error {
	n := u.h * u.w
	values := api.ColumnOf[float64](u.in, b, "vector")
	if err := input.Finite("vector", values, n); err != nil {
		return err
	}
	labels, err := input.Int32s(u.in, b, "label", u.rows)
	if err != nil {
		return err
	}
	for i, label := range labels {
		u.vectors[int(label)] = append(u.vectors[int(label)], slices.Clone(values[i*n:(i+1)*n]))
	}
	u.rows += int64(b.Rows)
	return nil
}

// Commit implements api.Upload.
func (u *basisUpload) Commit() (int64, error) {
	if u.rows == 0 {
		return 0, api.Errorf(api.BadTensor, "The basis has no vectors")
	}
	b, err := basis.Dense(u.h, u.w, u.vectors)
	if err != nil {
		return 0, err
	}
	if err := u.catalog.StoreBasis(u.req.Name, b, u.req.Replace); err != nil {
		return 0, err
	}
	return u.rows, nil
}

// Abort implements api.Upload.
func (u *basisUpload) Abort() {}

// basisCost is the number of bytes of memory that the upload takes for each one on the wire.
const basisCost = 3
