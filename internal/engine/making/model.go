package making

import (
	"context"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/mixture"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/data"
)

// Model makes a mixture, of the numbers in the request or of a data set.
func (k *Maker) Model(ctx context.Context, req api.MakeModel, progress func(api.Meta),
) (info api.ModelInfo, err error) {
	if err := k.Catalog.FreeModel(req.Name, req.Replace); err != nil { // before the work; SaveModel checks again
		return info, err
	}
	var m *checkpoint.Model
	if req.Dataset != "" {
		m, err = k.mixtureFromDataset(ctx, req, progress)
	} else {
		m, err = mixtureFromLaws(req)
	}
	if err != nil {
		return info, err
	}
	made, err := k.Catalog.SaveModel(req.Name, req.Replace, m)
	if err != nil {
		return info, err
	}
	return made.Describe(), nil
}

func mixtureFromLaws(req api.MakeModel) (*checkpoint.Model, error) {
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
	return buildMixture(c, laws, 0)
}

func buildMixture(c mixture.Config, laws []mixture.Law, floor float64) (*checkpoint.Model, error) {
	net, values, err := mixture.Build(c, laws, floor)
	if err != nil {
		return nil, api.Errorf(api.BadRequest, "There is no such mixture: %w", err)
	}
	return &checkpoint.Model{Net: net, Values: values}, nil
}

func (k *Maker) mixtureFromDataset(ctx context.Context, req api.MakeModel, progress func(api.Meta)) (*checkpoint.Model, error) {
	d, err := k.Catalog.Dataset(req.Dataset)
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
	err = d.Each(ctx, nil, api.ThrottledProgress(progress), func(labels []int32, images []float64) error {
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
	return buildMixture(c, laws, req.Floor)
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
