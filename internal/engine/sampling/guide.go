package sampling

import (
	"math"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// Guide is the second network of guided samples, D₀ in D₀ + s (D₁ − D₀): the model's own without a label, or another
// model. A nil Guide guides nothing.
type Guide struct {
	mix   sampler.Guide // with its weights while they are held
	model *catalog.Model
}

// NewGuide finds the guide of a model that a request names, by default the model without labels; nil if none is asked
// for.
func NewGuide(c *catalog.Catalog, req api.Guided, m *catalog.Model, b *basis.Basis) (*Guide, error) {
	if req.Guidance == 1 {
		if req.Guide != "" || req.GuidanceInterval != nil {
			return nil, api.Errorf(api.BadRequest, "guide and guidance_interval have no effect at guidance 1").
				WithHint("Give guidance, or leave them out.")
		}
		return nil, nil
	}
	g := &Guide{model: m, mix: sampler.Guide{Scale: req.Guidance, To: math.Inf(1)}}
	if req.GuidanceInterval != nil {
		g.mix.From, g.mix.To = req.GuidanceInterval[0], req.GuidanceInterval[1]
	}
	switch {
	case req.Guide == "" && m.Shape.Labels == 0:
		return nil, api.Errorf(api.BadRequest, "The model %q has no classes, so that its denoiser without a label is its own",
			m.Name).WithHint("Name another model without classes as guide.")
	case req.Guide != "":
		var err error
		if g.model, err = c.Model(req.Guide); err != nil {
			return nil, err
		}
		guide, own := g.model.Shape, m.Shape
		if guide.Height != own.Height || guide.Width != own.Width || guide.Channels != own.Channels {
			return nil, api.Errorf(api.BadRequest, "guide must be a model of images %d×%d×%d, got %q of %d×%d×%d",
				own.Height, own.Width, own.Channels, g.model.Name, guide.Height, guide.Width, guide.Channels)
		}
		if guide.Labels != 0 && guide.Labels != own.Labels {
			return nil, api.Errorf(api.BadRequest, "guide must be a model of %d classes or none, got %q of %d", own.Labels,
				g.model.Name, guide.Labels)
		}
		if !guide.Normalization.Equal(own.Normalization) {
			return nil, api.Errorf(api.BadRequest, "guide must be a model of data with the normalization %v, got %q with %v",
				own.Normalization, g.model.Name, guide.Normalization)
		}
		g.mix.Labels = guide.Labels != 0
	}
	var err error
	g.mix.Net.Model, err = g.model.NetworkOn(b)
	return g, err
}

// Hold keeps the weights of a model and of its guide on the device until release.
func (g *Guide) Hold(m *catalog.Model) (release func(), err error) {
	if err := m.Hold(); err != nil {
		return nil, err
	}
	if g == nil {
		return m.Release, nil
	}
	if err := g.model.Hold(); err != nil {
		m.Release()
		return nil, err
	}
	g.mix.Net.Weights = g.model.Weights()
	return func() {
		g.model.Release()
		m.Release()
	}, nil
}

// Mix returns the guide as a sampler takes it, nil for nil: with its weights while it is held.
func (g *Guide) Mix() *sampler.Guide {
	if g == nil {
		return nil
	}
	return &g.mix
}
