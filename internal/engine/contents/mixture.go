package contents

import (
	"context"
	"fmt"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/mixture"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// MakeModel makes a mixture, of the numbers in the request or of a data set.
func (c *Contents) MakeModel(ctx context.Context, req api.MakeModel, progress func(api.Meta),
) (info api.ModelInfo, err error) {
	if err := c.Catalog.FreeModel(req.Name, req.Replace); err != nil { // before the work; SaveModel checks again
		return info, err
	}
	var m *checkpoint.Model
	if req.Dataset != "" {
		m, err = c.mixtureFromDataset(ctx, req, progress)
	} else {
		m, err = mixtureFromLaws(req)
	}
	if err != nil {
		return info, err
	}
	model, err := c.Catalog.SaveModel(req.Name, req.Replace, m)
	if err != nil {
		return info, err
	}
	return model.Describe(), nil
}

func mixtureFromLaws(req api.MakeModel) (*checkpoint.Model, error) {
	cfg := mixture.Config{
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
			cfg.LabelDim = max(cfg.LabelDim, req.Labels[i]+1)
		}
	}
	return buildMixture(cfg, laws, 0)
}

func buildMixture(cfg mixture.Config, laws []mixture.Law, floor float64) (*checkpoint.Model, error) {
	net, values, err := mixture.Build(cfg, laws, floor)
	if err != nil {
		return nil, api.Errorf(api.BadRequest, "The mixture cannot be made: %w", err)
	}
	return &checkpoint.Model{Net: net, Values: values}, nil
}

func (c *Contents) mixtureFromDataset(ctx context.Context, req api.MakeModel, progress func(api.Meta),
) (*checkpoint.Model, error) {
	d, err := c.Catalog.Dataset(req.Dataset)
	if err != nil {
		return nil, err
	}
	refused := func(err error) error {
		return api.Errorf(api.BadRequest, "The data set %q cannot be made a mixture: %w", req.Dataset, err)
	}
	seen := make([]bool, d.Classes())
	for i := range d.Len() {
		if label := d.Label(i); label >= 0 {
			seen[label] = true
		}
	}
	if label := slices.Index(seen, false); label >= 0 { // before memory is taken for a million classes
		return nil, refused(fmt.Errorf("class %d has no images", label))
	}
	h, w, channels := d.Height(), d.Width(), d.Channels()
	cfg := mixture.Config{
		ModelType: mixture.ModelType, ImgResolution: kernels.Resolution{Height: h, Width: w},
		ImgChannels: channels, LabelDim: d.Classes(), Normalization: d.Normalization(),
		Components: slices.Repeat([]mixture.Component{{Weight: 1}}, max(d.Classes(), 1)),
	}
	for label := range d.Classes() {
		cfg.Components[label].Label = label
	}
	if err := cfg.Validate(); err != nil { // before memory is taken
		return nil, api.Errorf(api.TooLarge, "A mixture of the classes of %q is too large: %w", req.Dataset, err)
	}
	var blocks [][]float64
	if req.Covariance == "dct" {
		blocks = mixture.DCTBlocks(h, w, channels)
	}
	measure := mixture.NewMeasure(d.Pixels(), d.Classes())
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
	return buildMixture(cfg, laws, req.Floor)
}
