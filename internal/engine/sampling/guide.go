package sampling

import (
	"math"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// NewGuide returns the guide of a request for model m, the second network D₀ in D₀ + s (D₁ − D₀), or nil if it asks for
// none. The default guide is m without a label. hold keeps the weights of m and of the guide on the device until
// release.
func NewGuide(c *catalog.Catalog, req api.Guided, m *catalog.Model, b *basis.Basis) (
	g *sampler.Guide, hold func() (release func(), err error), err error,
) {
	if req.Guidance == 1 {
		if req.Guide != "" || req.GuidanceInterval != nil {
			return nil, nil, api.Errorf(api.BadRequest, "guide and guidance_interval have no effect at guidance 1").
				WithHint("Give guidance, or leave them out.")
		}
		return nil, func() (func(), error) { return m.Release, m.Hold() }, nil
	}
	g = &sampler.Guide{Scale: req.Guidance, To: math.Inf(1)}
	if req.GuidanceInterval != nil {
		g.From, g.To = req.GuidanceInterval[0], req.GuidanceInterval[1]
	}
	model := m
	switch {
	case req.Guide == "" && m.Shape.Labels == 0:
		return nil, nil, api.Errorf(api.BadRequest, "The model %q has no classes, so that a label changes nothing",
			m.Name).WithHint("Name another model without classes as guide.")
	case req.Guide != "":
		if model, err = c.Model(req.Guide); err != nil {
			return nil, nil, err
		}
		guide, shape := model.Shape, m.Shape
		if guide.Height != shape.Height || guide.Width != shape.Width || guide.Channels != shape.Channels {
			return nil, nil, api.Errorf(api.BadRequest, "guide must be a model of images %d×%d×%d, got %q of %d×%d×%d",
				shape.Height, shape.Width, shape.Channels, model.Name, guide.Height, guide.Width, guide.Channels)
		}
		if guide.Labels != 0 && guide.Labels != shape.Labels {
			return nil, nil, api.Errorf(api.BadRequest, "guide must be a model of %d classes or none, got %q of %d",
				shape.Labels, model.Name, guide.Labels)
		}
		if !guide.Normalization.Equal(shape.Normalization) {
			return nil, nil, api.Errorf(api.BadRequest,
				"guide must be a model of data with the normalization %v, got %q with %v",
				shape.Normalization, model.Name, guide.Normalization)
		}
		g.Labels = guide.Labels != 0
	}
	if g.Net.Model, err = model.NetworkOn(b); err != nil {
		return nil, nil, err
	}
	return g, func() (release func(), err error) {
		if err := m.Hold(); err != nil {
			return nil, err
		}
		if err := model.Hold(); err != nil {
			m.Release()
			return nil, err
		}
		g.Net.Weights = model.Weights()
		return func() {
			model.Release()
			m.Release()
		}, nil
	}, nil
}
