package engine

import (
	"context"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/passes"
)

// makeBasis makes a basis from a data set and stores it.
func (e *Engine) makeBasis(ctx context.Context, req api.MakeBasis, progress func(api.Meta)) (any, error) {
	if err := e.catalog.FreeBasis(req.Name, req.Replace); err != nil { // before the work; storeBasis asks again
		return nil, err
	}
	kind, err := catalog.BasisKind("kind", req.Kind, catalog.Made)
	if err != nil {
		return nil, err
	}
	if req.Clusters != nil && !kind.PerClass {
		return nil, api.Errorf(api.BadRequest, "clusters must be left out for kind %s; only a basis per class takes it",
			req.Kind)
	}
	d, err := e.catalog.SeenBy(req.Model, req.Dataset)
	if err != nil {
		return nil, err
	}
	var b *basis.Basis
	var spans []passes.Span
	if kind.ByFormula() {
		b, err = e.vectors(schedule.Family{Basis: req.Kind, K: req.K}, d.Height(), d.Width())
	} else {
		b, spans, err = passes.PCA(ctx, d, passes.PCASettings{
			K: req.K, PerClass: kind.PerClass, Components: kind.Components, Clusters: req.Clusters,
			Progress: api.Sparsely(progress),
		})
	}
	if err != nil {
		return nil, err
	}
	if err := e.catalog.StoreBasis(req.Name, b, req.Replace); err != nil {
		return nil, err
	}
	info := catalog.DescribeBasis(req.Name, b)
	for _, s := range spans {
		info.Spans = append(info.Spans, api.BasisSpan{Labels: s.Labels, Images: s.Images, Share: s.Share})
	}
	return info, nil
}

// vectors returns the basis of a formula by its vectors, as a stored basis is.
func (e *Engine) vectors(f schedule.Family, h, w int) (*basis.Basis, error) {
	b, _, err := e.catalog.Formula(f, h, w)
	if err != nil {
		return nil, err
	}
	v, err := b.Vectors(basis.Shared)
	if err != nil {
		return nil, err
	}
	return basis.Dense(h, w, map[int][][]float64{basis.Shared: slices.Collect(slices.Chunk(v, h*w))})
}
