package engine

import (
	"context"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/kernels/mixture"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/data"
	"github.com/anisoflight/anisoflight/train/passes"
)

func (e *Engine) makeModel(ctx context.Context, req api.MakeModel, progress func(api.Meta),
) (info api.ModelInfo, err error) {
	if err := e.catalog.FreeModel(req.Name, req.Replace); err != nil { // before the work; SaveModel checks again
		return info, err
	}
	var m *checkpoint.Model
	if req.Dataset != "" {
		m, err = e.mixtureOf(ctx, req, progress)
	} else {
		m, err = mixtureBy(req)
	}
	if err != nil {
		return info, err
	}
	made, err := e.catalog.SaveModel(req.Name, req.Replace, m)
	if err != nil {
		return info, err
	}
	return made.Describe(), nil
}

func mixtureBy(req api.MakeModel) (*checkpoint.Model, error) {
	c := mixture.Config{
		ImgResolution: kernels.Resolution{Height: req.Shape[0], Width: req.Shape[1]},
		ImgChannels:   req.Shape[2],
	}
	laws := make([]mixture.Law, len(req.Means))
	for i := range laws {
		laws[i] = mixture.Law{
			Component: mixture.Component{Weight: req.Weights[i]}, Mean: req.Means[i],
			Cov: slices.Concat(req.Covariances[i]...),
		}
		if req.Labels != nil {
			laws[i].Label = req.Labels[i]
			c.LabelDim = max(c.LabelDim, req.Labels[i]+1)
		}
	}
	return built(c, laws, 0)
}

func built(c mixture.Config, laws []mixture.Law, floor float64) (*checkpoint.Model, error) {
	net, values, err := mixture.Build(c, laws, floor)
	if err != nil {
		return nil, api.Errorf(api.BadRequest, "There is no such mixture: %w", err)
	}
	return &checkpoint.Model{Net: net, Values: values}, nil
}

func (e *Engine) mixtureOf(ctx context.Context, req api.MakeModel, progress func(api.Meta)) (*checkpoint.Model, error) {
	d, err := e.catalog.Dataset(req.Dataset)
	if err != nil {
		return nil, err
	}
	if label, all := everyClass(d); !all { // before memory is taken for a million classes
		return nil, api.Errorf(api.BadRequest, "The data set %q makes no mixture: class %d has no images", req.Dataset, label)
	}
	h, w, channels := d.Height(), d.Width(), d.Channels()
	c := mixture.Config{
		ModelType: mixture.ModelType, ImgResolution: kernels.Resolution{Height: h, Width: w},
		ImgChannels: channels, LabelDim: d.Classes(), Normalization: d.Normalization(),
		Components: slices.Repeat([]mixture.Component{{Weight: 1}}, max(d.Classes(), 1)),
	}
	for label := range d.Classes() {
		c.Components[label].Label = label
	}
	if err := c.Validate(); err != nil { // before memory is taken
		return nil, api.Errorf(api.TooLarge, "A mixture of the classes of %q is too large: %w", req.Dataset, err)
	}
	var blocks [][]float64
	if req.Covariance == "dct" {
		blocks = mixture.DCTBlocks(h, w, channels)
	}
	measure := mixture.NewMeasure(d.Pixels(), d.Classes())
	refused := func(err error) error {
		return api.Errorf(api.BadRequest, "The data set %q makes no mixture: %w", req.Dataset, err)
	}
	err = d.Each(ctx, nil, api.Sparsely(progress), func(labels []int32, images []float64) error {
		if err := measure.Add(labels, images); err != nil {
			return refused(err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	laws, err := measure.Laws()
	if err != nil {
		return nil, refused(err)
	}
	for i := range laws {
		laws[i].Blocks = blocks
	}
	return built(c, laws, req.Floor)
}

// everyClass reports whether every class of a data set has an image, or else the first that has none.
func everyClass(d *data.Dataset) (missing int, all bool) {
	seen := make([]bool, d.Classes())
	for i := range d.Len() {
		if label := d.Label(i); label >= 0 {
			seen[label] = true
		}
	}
	missing = slices.Index(seen, false)
	return missing, missing < 0
}

func (e *Engine) makeBasis(ctx context.Context, req api.MakeBasis, progress func(api.Meta),
) (info api.BasisInfo, err error) {
	if err := e.catalog.FreeBasis(req.Name, req.Replace); err != nil { // before the work; storeBasis checks again
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
	d, err := e.catalog.SeenBy(req.Model, req.Dataset)
	if err != nil {
		return info, err
	}
	var b *basis.Basis
	var spans []passes.Span
	if kind.ByFormula() {
		b, err = e.vectors(schedule.Family{Basis: req.Kind, K: req.K}, d.Height(), d.Width())
	} else {
		b, spans, err = passes.PCA(ctx, d, passes.PCASettings{
			K: req.K, PerClass: kind.PerClass, Clusters: req.Clusters,
			Progress: api.Sparsely(progress),
		})
	}
	if err != nil {
		return info, err
	}
	if err := e.catalog.StoreBasis(req.Name, b, req.Replace); err != nil {
		return info, err
	}
	info = catalog.DescribeBasis(req.Name, b)
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

// makeDataset draws images from a mixture and stores them. Image i depends on the model and on seed + i alone.
func (e *Engine) makeDataset(ctx context.Context, req api.MakeDataset, progress func(api.Meta),
) (info api.DatasetInfo, err error) {
	if err := e.catalog.FreeDataset(req.Name, req.Replace); err != nil { // before the work; PlaceDataset checks again
		return info, err
	}
	m, err := e.catalog.Model(req.Model)
	if err != nil {
		return info, err
	}
	net, ok := m.Net.(kernels.Sampler)
	if !ok {
		return info, api.Errorf(api.BadRequest, "The model %q is no mixture: images of a known law are drawn from one",
			req.Model).WithHint("MakeModel makes mixtures.")
	}
	stored, err := m.Stored()
	if err != nil {
		return info, err
	}
	h, w, c := m.ImageSize()
	if bytes := api.Times(api.Times(int64(h)*int64(w), int64(c)*4), int64(req.N)); bytes > e.cfg.MaxUploadBytes {
		return info, api.Errorf(api.TooLarge, "%d images have %d bytes, a data set may have %d", req.N, bytes,
			e.cfg.MaxUploadBytes)
	}
	images, err := e.catalog.CreateDataset(req.Name, data.Form{
		Height: h, Width: w, Channels: c, Float: true, Labels: m.Shape.Labels > 0, Unbounded: true,
		Normalization: m.Shape.Normalization,
	}, req.N)
	if err != nil {
		return info, err
	}
	defer images.Abort()
	report := api.Sparsely(progress)
	normal, image := make([]float32, h*w*c), make([]float32, h*w*c)
	for i := range req.N {
		if err := ctx.Err(); err != nil {
			return info, err
		}
		key := latent.Uint64(req.Seed+uint64(i), 0, 0)
		latent.Normal(key, 1, normal)
		label := net.Draw(stored.Values, float64(latent.Uint64(key, 0, 0)>>11)*0x1p-53, normal, image)
		m.Shape.Normalization.Back(image)
		labels := []int32{int32(label)}
		if m.Shape.Labels == 0 {
			labels = nil
		}
		if err := images.Float32(image, labels); err != nil {
			return info, err
		}
		report(i+1, req.N)
	}
	if err := e.catalog.PlaceDataset(req.Name, images, req.Replace); err != nil {
		return info, err
	}
	d, err := e.catalog.Dataset(req.Name)
	if err != nil {
		return info, err
	}
	return catalog.DescribeDataset(req.Name, d), nil
}
