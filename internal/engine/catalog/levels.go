package catalog

import (
	"math"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// G0 returns the variance at which schedules for the model begin, where a request leaves it at the default.
func (m *Model) G0(asked float64) float64 {
	if asked == 0 || asked == schedule.DefaultG0 {
		return m.Shape.Range.G0()
	}
	return asked
}

// Outside returns a model that stands for a network outside the server, of which the noise levels alone are known.
func Outside(levels schedule.Range) *Model {
	return &Model{Name: "outside the server", Shape: kernels.Shape{Range: levels}}
}

// CheckRange refuses a schedule with noise levels that the network was not trained on.
func (m *Model) CheckRange(s Schedule) error {
	if err := s.Check(m.Shape.Range); err != nil {
		return api.Errorf(api.BadRequest, "The schedule %q does not suit the model %q: %w", s.Name, m.Name, err).
			WithHint("Make one with T = %.9g and g0 = %.9g, or leave the schedule out.", m.Shape.Range.T(), m.Shape.Range.G0())
	}
	return nil
}

// OnLevels returns a grid and a schedule for sampling from a model with noise levels of its own: the grid between them
// in place of EDM's, and the schedule with an end at no noise, so that what samplers return is the image.
func (m *Model) OnLevels(g api.Grid, s Schedule) (api.Grid, Schedule, error) {
	known := m.Shape.Range
	if !known.Known() {
		return g, s, nil
	}
	lo, hi := known.Ends()
	free := g.Kind == api.GridLogSNR
	if free && g.SigmaMin == 0 || g.SigmaMin == schedule.DefaultSigmaMin {
		g.SigmaMin = max(lo, s.Sigma(0, 0))
	}
	if free && g.SigmaMax == 0 || g.SigmaMax == schedule.DefaultSigmaMax {
		g.SigmaMax = min(hi, s.Sigma(0, s.T()))
	}
	if known.G0() == schedule.DefaultG0 {
		return g, s, nil
	}
	var err error
	s.Schedule, err = s.ToZero()
	return g, s, err
}

// CheckPlan refuses a plan that evaluates the network at noise levels that it was not trained on.
func (m *Model) CheckPlan(p *solver.Plan) error {
	for _, stage := range p.Stages {
		for _, g := range stage.G {
			if !m.Shape.Range.Holds(g) {
				lo, hi := m.Shape.Range.Ends()
				return api.Errorf(api.BadRequest,
					"The sampler evaluates the model %q at noise level %.6g, outside of %.6g … %.6g, "+
						"those that it was trained on", m.Name, math.Sqrt(g), lo, hi).
					WithHint("Leave sigma_min, sigma_max and lists of noise levels to the model, or keep within.")
			}
		}
	}
	return nil
}
