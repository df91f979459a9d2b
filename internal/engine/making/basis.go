package making

import (
	"context"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/passes"
)

// Basis makes a basis by its formula or of the components of a data set.
func (k *Maker) Basis(ctx context.Context, req api.MakeBasis, progress func(api.Meta),
) (info api.BasisInfo, err error) {
	if err := k.Catalog.FreeBasis(req.Name, req.Replace); err != nil { // before the work; storeBasis checks again
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
	d, err := k.Catalog.SeenBy(req.Model, req.Dataset)
	if err != nil {
		return info, err
	}
	var b *basis.Basis
	var spans []passes.Span
	if kind.ByFormula() {
		b, err = k.vectors(schedule.Family{Basis: req.Kind, K: req.K}, d.Height(), d.Width())
	} else {
		b, spans, err = passes.PCA(ctx, d, passes.PCASettings{
			K: req.K, PerClass: kind.PerClass, Clusters: req.Clusters,
			Progress: api.ThrottledProgress(progress),
		})
	}
	if err != nil {
		return info, err
	}
	if err := k.Catalog.StoreBasis(req.Name, b, req.Replace); err != nil {
		return info, err
	}
	info = catalog.DescribeBasis(req.Name, b)
	for _, s := range spans {
		info.Spans = append(info.Spans, api.BasisSpan{Labels: s.Labels, Images: s.Images, Share: s.Share})
	}
	return info, nil
}

// vectors returns the basis of a formula by its vectors, as a stored basis is.
func (k *Maker) vectors(f schedule.Family, h, w int) (*basis.Basis, error) {
	b, _, err := k.Catalog.Formula(f, h, w)
	if err != nil {
		return nil, err
	}
	v, err := b.Vectors(basis.Shared)
	if err != nil {
		return nil, err
	}
	return basis.Dense(h, w, map[int][][]float64{basis.Shared: slices.Collect(slices.Chunk(v, h*w))})
}
