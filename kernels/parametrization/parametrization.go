package parametrization

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"

	"github.com/anisoflight/anisoflight/schedule"
)

// Parametrization is one of the kinds with its constants. It is immutable and safe for concurrent use.
type Parametrization struct {
	given Config // as it was configured
	cfg   Config // with defaults
	table table  // of epsilon, v and x0
	noise schedule.Range
}

// table holds the labels of increasing noise levels.
type table struct{ logs, labels []float64 } // ln σ, label

// New returns the parametrisation of a configuration. Errors are *[nn.ConfigError].
func New(c Config) (*Parametrization, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	p := &Parametrization{given: c, cfg: c.resolved()}
	for i, a := range p.cfg.AlphasCumprod {
		if a > 0 {
			p.table.logs = append(p.table.logs, 0.5*(math.Log1p(-a)-math.Log(a)))
			p.table.labels = append(p.table.labels, p.cfg.Timesteps[i])
		}
	}
	own := p.defaultRange()
	p.noise = own.Within(schedule.Range{Min: c.SigmaMin, Max: c.SigmaMax})
	if p.noise.Empty() {
		return nil, bad("sigma_min", "must leave noise levels between %g and %g, those of the kind %s; got %g … %g",
			own.Min, own.Max, c.Kind, c.SigmaMin, c.SigmaMax)
	}
	return p, nil
}

// OfEDM returns EDM's own with the standard deviation σ_d of the data; 0 means 0.5.
func OfEDM(sigmaData float64) *Parametrization {
	c := Config{Kind: EDM, SigmaData: sigmaData}
	return &Parametrization{given: c, cfg: c.resolved()}
}

// defaultRange returns the noise levels that the kind's constants tell.
func (p *Parametrization) defaultRange() schedule.Range {
	c := p.cfg
	switch c.Kind {
	case VP:
		at := func(t float64) float64 { return math.Sqrt(math.Expm1(0.5*c.BetaD*t*t + c.BetaMin*t)) }
		return schedule.Range{Min: at(c.EpsilonT), Max: at(1)}
	case VE:
		return schedule.Range{Min: cmp.Or(c.SigmaMin, 0.02), Max: cmp.Or(c.SigmaMax, 100)}
	case Epsilon, V, X0:
		l := p.table.logs
		return schedule.Range{Min: math.Exp(l[0]), Max: math.Exp(l[len(l)-1])}
	}
	return schedule.Range{}
}

// Kind returns one of Kinds; that of nil, of a network that names none, is EDM's.
func (p *Parametrization) Kind() string {
	if p == nil {
		return EDM
	}
	return p.cfg.Kind
}

// SigmaData returns the standard deviation of the data.
func (p *Parametrization) SigmaData() float64 { return p.cfg.SigmaData }

// Range returns the noise levels that the network was trained on, as far as they are known; of nil, none.
func (p *Parametrization) Range() schedule.Range {
	if p == nil {
		return schedule.Range{}
	}
	return p.noise
}

// MarshalJSON writes the section as it was configured.
func (p *Parametrization) MarshalJSON() ([]byte, error) { return json.Marshal(p.given) }

// Key names the graph that p appends, constants included.
func (p *Parametrization) Key() string {
	text, err := json.Marshal(p.cfg)
	if err != nil {
		panic(fmt.Sprintf("parametrization: %v", err)) // all numbers are finite
	}
	return fmt.Sprintf("%s %x", p.cfg.Kind, sha256.Sum256(text))
}
