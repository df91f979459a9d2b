package guides

import (
	"math"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/batch"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// Guide is the network of D₀ in D₀ + s (D₁ − D₀). A nil Guide guides nothing.
type Guide struct {
	model *catalog.Model
	on    *kernels.Model
	by    batch.Guide // without the weights
}

// New finds the guide of a model that a request names, by default the model without labels; nil where none is asked
// for.
func New(c *catalog.Catalog, req api.Guided, m *catalog.Model, b *basis.Basis) (*Guide, error) {
	if req.Guidance == 1 {
		if req.Guide != "" || req.GuidanceInterval != nil {
			return nil, api.Errorf(api.BadRequest, "guide and guidance_interval have no effect at guidance 1").
				WithHint("Give guidance, or leave them out.")
		}
		return nil, nil
	}
	g := &Guide{model: m, by: batch.Guide{Scale: req.Guidance, To: math.Inf(1)}}
	if req.GuidanceInterval != nil {
		g.by.From, g.by.To = req.GuidanceInterval[0], req.GuidanceInterval[1]
	}
	switch {
	case req.Guide == "" && m.Shape.Labels == 0:
		return nil, api.Errorf(api.BadRequest, "The model %q has no classes, so that its denoiser without a label is its own",
			m.Name).WithHint("Name another model as guide.")
	case req.Guide != "":
		var err error
		if g.model, err = c.Model(req.Guide); err != nil {
			return nil, err
		}
		of, own := g.model.Shape, m.Shape
		if of.Height != own.Height || of.Width != own.Width || of.Channels != own.Channels {
			return nil, api.Errorf(api.BadRequest, "guide must be a model of images %d×%d×%d, got %q of %d×%d×%d",
				own.Height, own.Width, own.Channels, g.model.Name, of.Height, of.Width, of.Channels)
		}
		if of.Labels != 0 && of.Labels != own.Labels {
			return nil, api.Errorf(api.BadRequest, "guide must be a model of %d classes or none, got %q of %d", own.Labels,
				g.model.Name, of.Labels)
		}
		if !of.Normalization.Equal(own.Normalization) {
			return nil, api.Errorf(api.BadRequest, "guide must be a model of data with the normalization %v, got %q with %v",
				own.Normalization, g.model.Name, of.Normalization)
		}
		g.by.Labels = of.Labels != 0
	}
	var err error
	g.on, err = g.model.On(b)
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
	return func() {
		g.model.Release()
		m.Release()
	}, nil
}

// Held returns the guide with its weights, which somebody holds.
func (g *Guide) Held() *batch.Guide {
	if g == nil {
		return nil
	}
	by := g.by
	by.Net = batch.Network{On: g.on, Weights: g.model.Weights()}
	return &by
}

// Evaluations counts those of both networks in the first n stages of a plan.
func (g *Guide) Evaluations(p *solver.Plan, n int) int {
	if g == nil {
		return n
	}
	return g.by.Evaluations(p, n)
}
