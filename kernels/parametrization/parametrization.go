// Package parametrization computes the flow from the output F of a network.
//
// Networks are trained with different scalings and targets. With x = x_0 + σ ε and g = σ², each is described by four
// numbers and a label, functions of g alone:
//
//	y        = in(g) x                          input of the network
//	c        = noise(ln σ)                      noise label
//	flow     = skip(g) x + out(g) F(y, c)       flow = (D − x)/√g = E[−ε | x]
//	D        = keep(g) x + √g out(g) F(y, c)    keep = 1 + √g skip
//	flow + ε = keep(g) ε + skip(g) x_0 + out(g) F(y, c)
//
// With noise in several subspaces there are four numbers for each g_j, and the label is that of the geometric mean of
// the noise levels. The kinds:
//
//	kind     in           skip             out           keep       noise             F predicts
//	edm      1/√(g+s)     −√g/(g+s)        σ_d/√(g+s)    s/(g+s)    ln(σ)/4           s = σ_d²
//	vp       1/√(1+g)     0                −1            1          (M−1) t(σ)        ε
//	ve       1            0                1             1          ln(σ/2)           −ε
//	epsilon  1/√(1+g)     0                −1            1          table             ε
//	v        1/√(1+g)     −√g/(1+g)        −1/√(1+g)     1/(1+g)    table             √ᾱ ε − √(1−ᾱ) x_0
//	x0       1/√(1+g)     −1/√g            1/√g          0          table             x_0
//	flow     1/(1+σ)      −1/(1+σ)         −1/(1+σ)      1/(1+σ)    N σ/(1+σ)         ε − x_0
//
// t(σ) is the inverse of σ² = exp(β_d t²/2 + β_min t) − 1. A table lists ᾱ = 1/(1+σ²) of discrete times; between them
// the label is linear in ln σ, beyond them it is constant. A flow network with to_data runs from noise at time 0 to
// data at time 1: it predicts x_0 − ε, and its label is N/(1+σ).
//
// Sources: Karras et al. 2022 (arXiv:2206.00364, table 1) for edm, vp and ve; Ho et al. 2020 (arXiv:2006.11239) for
// epsilon; Salimans and Ho 2022 (arXiv:2202.00512) for v; Liu et al. 2022 (arXiv:2209.03003) and Lipman et al. 2022
// (arXiv:2210.02747) for flow.
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
	requested Config // without defaults
	cfg       Config // with defaults
	table     table  // of epsilon, v and x0
	noise     schedule.Range
}

// table holds the labels of increasing noise levels.
type table struct{ logs, labels []float64 } // ln σ, label

// New returns the parametrisation of a configuration. Errors are *[nn.ConfigError].
func New(c Config) (*Parametrization, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	p := &Parametrization{requested: c, cfg: c.resolved()}
	for i, a := range p.cfg.AlphasCumprod {
		if a > 0 {
			p.table.logs = append(p.table.logs, 0.5*(math.Log1p(-a)-math.Log(a)))
			p.table.labels = append(p.table.labels, p.cfg.Timesteps[i])
		}
	}
	levels := p.defaultRange()
	p.noise = levels.Within(schedule.Range{Min: c.SigmaMin, Max: c.SigmaMax})
	if p.noise.Empty() {
		return nil, bad("sigma_min", "must leave noise levels between %g and %g, those of the kind %s; got %g … %g",
			levels.Min, levels.Max, c.Kind, c.SigmaMin, c.SigmaMax)
	}
	return p, nil
}

// OfEDM returns EDM's parametrisation with the standard deviation σ_d of the data; 0 means 0.5.
func OfEDM(sigmaData float64) *Parametrization {
	c := Config{Kind: EDM, SigmaData: sigmaData}
	return &Parametrization{requested: c, cfg: c.resolved()}
}

// defaultRange returns the noise levels that follow from the kind's constants.
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

// Kind returns one of Kinds; EDM if p is nil.
func (p *Parametrization) Kind() string {
	if p == nil {
		return EDM
	}
	return p.cfg.Kind
}

// SigmaData returns the standard deviation of the data.
func (p *Parametrization) SigmaData() float64 { return p.cfg.SigmaData }

// Range returns the noise levels that the network was trained on, if they are known. p may be nil.
func (p *Parametrization) Range() schedule.Range {
	if p == nil {
		return schedule.Range{}
	}
	return p.noise
}

// MarshalJSON writes the section as it was configured.
func (p *Parametrization) MarshalJSON() ([]byte, error) { return json.Marshal(p.requested) }

// Key identifies the graph that p appends, constants included.
func (p *Parametrization) Key() string {
	text, err := json.Marshal(p.cfg)
	if err != nil {
		panic(fmt.Sprintf("parametrization: %v", err)) // all numbers are finite
	}
	return fmt.Sprintf("%s %x", p.cfg.Kind, sha256.Sum256(text))
}
