package contents

import (
	"context"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/passes"
)

// MakeBasis makes a basis by its formula, or of the components of a data set.
func (c *Contents) MakeBasis(ctx context.Context, req api.MakeBasis, progress func(api.Meta),
) (info api.BasisInfo, err error) {
	if err := c.Catalog.FreeBasis(req.Name, req.Replace); err != nil { // before the work; StoreBasis checks again
		return info, err
	}
	kind, err := catalog.BasisKind("kind", req.Kind, func(d basis.Definition) bool { return d.Made })
	if err != nil {
		return info, err
	}
	if req.Clusters != nil && !kind.PerClass {
		return info, api.Errorf(api.BadRequest, "clusters must be left out for kind %s; only a basis per class takes it",
			req.Kind)
	}
	d, err := c.Catalog.SeenBy(req.Model, req.Dataset)
	if err != nil {
		return info, err
	}
	var b *basis.Basis
	var spans []passes.Span
	if kind.ByFormula() {
		b, err = c.formulaVectors(schedule.Family{Basis: req.Kind, K: req.K}, d.Height(), d.Width())
	} else {
		b, spans, err = passes.PCA(ctx, d, passes.PCASettings{
			K: req.K, PerClass: kind.PerClass, Clusters: req.Clusters,
			Progress: api.ThrottledProgress(progress),
		})
	}
	if err != nil {
		return info, err
	}
	info, err = c.Catalog.StoreBasis(req.Name, b, req.Replace)
	for _, s := range spans {
		info.Spans = append(info.Spans, api.BasisSpan{Labels: s.Labels, Images: s.Images, Share: s.Share})
	}
	return info, err
}

// formulaVectors returns the basis that a formula gives, as a stored basis of its vectors.
func (c *Contents) formulaVectors(f schedule.Family, h, w int) (*basis.Basis, error) {
	b, _, err := c.Catalog.Formula(f, h, w)
	if err != nil {
		return nil, err
	}
	v, err := b.Vectors(basis.Shared)
	if err != nil {
		return nil, err
	}
	return basis.Dense(h, w, map[int][][]float64{basis.Shared: slices.Collect(slices.Chunk(v, h*w))})
}

// SendBasis sends the vectors of a basis.
func (c *Contents) SendBasis(_ context.Context, req api.Basis) (*api.Job, error) {
	b, err := c.basisOf(req)
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
	return tables.NewPricedJob(c.MaxBytes, schema, int64(n), func(ctx context.Context, emit func(api.Event) error) error {
		return sendInBatches(ctx, schema, n, emit, func(from, to int) ([]any, error) {
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

// basisOf returns the basis of a request: a stored one, or that of a schedule.
func (c *Contents) basisOf(req api.Basis) (*basis.Basis, error) {
	if req.Basis != "" {
		return c.Catalog.Basis(req.Basis)
	}
	s, err := c.Catalog.ScheduleNamed(req.Schedule)
	if err != nil {
		return nil, err
	}
	if s.Basis != nil {
		return s.Basis, nil
	}
	name := s.Family().Basis
	if basis.ByFormula(name) {
		return nil, api.Errorf(api.BadRequest, "The schedule %q has the basis %s, which a formula gives", s.Name, name)
	}
	return c.Catalog.Basis(name)
}

// basisCost is the number of bytes of memory for each byte of an uploaded basis.
const basisCost = 3

// PutBasis opens the upload of a basis, and collects its vectors by label.
func (c *Contents) PutBasis(_ context.Context, req api.PutBasis, in api.Schema) (*api.Upload, error) {
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
		_, err = c.Catalog.StoreBasis(req.Name, b, req.Replace)
		return rows, err
	}
	return c.limitedUpload(api.Upload{Write: write, Commit: commit}, in, req.Rows, c.MaxUploadBytes, basisCost),
		c.Catalog.FreeBasis(req.Name, req.Replace)
}
