package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/mixture"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/data"
)

// makeModel makes a mixture and serves it.
func (e *Engine) makeModel(ctx context.Context, req api.MakeModel, progress func(api.Meta)) (any, error) {
	if err := e.catalog.FreeModel(req.Name, req.Replace); err != nil { // before the work; SaveModel asks again
		return nil, err
	}
	var m *checkpoint.Model
	var err error
	if req.Dataset != "" {
		m, err = e.mixtureOf(ctx, req, progress)
	} else {
		m, err = mixtureBy(req)
	}
	if err != nil {
		return nil, err
	}
	return described(e.catalog.SaveModel(req.Name, req.Replace, m))
}

// mixtureBy makes the mixture of the request's own laws.
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

// mixtureOf measures the mixture of a data set's classes.
func (e *Engine) mixtureOf(ctx context.Context, req api.MakeModel, progress func(api.Meta)) (*checkpoint.Model, error) {
	d, err := e.catalog.Dataset(req.Dataset)
	if err != nil {
		return nil, err
	}
	h, w, channels := d.Height(), d.Width(), d.Channels()
	c := mixture.Config{
		ModelType: mixture.ModelType, ImgResolution: kernels.Resolution{
			Height: h,
			Width:  w,
		}, ImgChannels: channels, LabelDim: d.Classes(), Normalization: d.Normalization(),
		Components: slices.Repeat([]mixture.Component{{Weight: 1}}, max(d.Classes(), 1)),
	}
	for label := range d.Classes() {
		c.Components[label].Label = label
	}
	if err := c.Validate(); err != nil { // before memory is taken
		return nil, api.Errorf(api.TooLarge, "A mixture of the classes of %q is too large: %w", req.Dataset, err)
	}
	if label, all := everyClass(d); !all { // before a million classes are measured for one image
		return nil, api.Errorf(api.BadRequest, "The data set %q makes no mixture: class %d has no images", req.Dataset, label)
	}
	blocks := make([][][]float64, len(c.Components))
	for i, k := range c.Components {
		if blocks[i], err = e.blocksOf(req.Covariance, d, k.Label); err != nil {
			return nil, err
		}
	}
	report := api.Sparsely(progress)
	im := make([]float32, d.Pixels())
	var unread error
	laws, err := mixture.Measure(d.Pixels(), d.Classes(), func(yield func([]float32, int32) bool) {
		for i := range d.Len() {
			unread = d.Image(i, false, im)
			if unread != nil || ctx.Err() != nil || !yield(im, d.Label(i)) {
				return
			}
			report(i+1, d.Len())
		}
	})
	if unread != nil || ctx.Err() != nil {
		return nil, errors.Join(unread, ctx.Err())
	}
	if err != nil {
		return nil, api.Errorf(api.BadRequest, "The data set %q makes no mixture: %w", req.Dataset, err)
	}
	for i := range laws {
		laws[i].Blocks = blocks[i]
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

// blocksOf returns the blocks within which a class's covariance is kept.
func (e *Engine) blocksOf(covariance string, d *data.Dataset, label int) ([][]float64, error) {
	switch covariance {
	case "full":
		return nil, nil
	case "dct":
		return mixture.DCTBlocks(d.Height(), d.Width(), d.Channels()), nil
	}
	b, err := e.catalog.BasisFor(schedule.Family{Basis: covariance}, d.Height(), d.Width(), nil, nil)
	if err != nil {
		return nil, err
	}
	return mixture.BasisBlocks(b, label, d.Channels())
}
