package parametrization

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/anisoflight/anisoflight/internal/base/suggest"
	"github.com/anisoflight/anisoflight/kernels/nn"
)

// The kinds of parametrisation.
const (
	EDM     = "edm"
	VP      = "vp"
	VE      = "ve"
	Epsilon = "epsilon"
	V       = "v"
	X0      = "x0"
	Flow    = "flow"
)

// Kinds lists the kinds.
var Kinds = []string{EDM, VP, VE, Epsilon, V, X0, Flow}

// Section is the field of a config.json that holds a Config.
const Section = "parametrization"

const maxTable = 1 << 16 // entries

// Config is the section "parametrization" of a config.json. Zero fields have the kind's defaults.
type Config struct {
	Kind string `json:"kind"`
	// standard deviation of the data: σ_d of edm, and of the weights of noise levels in pre-training; 0.5
	SigmaData float64 `json:"sigma_data,omitempty"`
	// the noise levels that the network was trained on, if they are fewer than the kind's
	SigmaMin float64 `json:"sigma_min,omitempty"`
	SigmaMax float64 `json:"sigma_max,omitempty"`

	BetaD    float64 `json:"beta_d,omitempty"`    // of vp: β_d, 19.9
	BetaMin  float64 `json:"beta_min,omitempty"`  // of vp: β_min, 0.1
	Steps    float64 `json:"steps,omitempty"`     // of vp: M, 1000; of flow: N, the label of t = 1, by default 1
	EpsilonT float64 `json:"epsilon_t,omitempty"` // of vp: the least t, 1e-5

	// of epsilon, v and x0: ᾱ of every discrete time, decreasing in (0, 1); zeros at the end are ignored
	AlphasCumprod []float64 `json:"alphas_cumprod,omitempty"`
	// of epsilon, v and x0: the label of every entry of the table, by default 0, 1, 2, …
	Timesteps []float64 `json:"timesteps,omitempty"`

	ToData bool `json:"to_data,omitempty"` // of flow: time runs from noise at 0 to data at 1
}

// UnmarshalJSON reads a section strictly. Errors are *[nn.ConfigError].
func (p *Parametrization) UnmarshalJSON(section []byte) error {
	var c Config
	if err := nn.DecodeConfig(section, "the field kind and what that kind takes", &c); err != nil {
		var wrong *nn.ConfigError
		if errors.As(err, &wrong) {
			wrong.Field = strings.TrimSuffix(Section+"."+wrong.Field, ".")
		}
		return err
	}
	read, err := New(c)
	if err == nil {
		*p = *read
	}
	return err
}

// bad returns the error of a field of the section.
func bad(field, format string, args ...any) error {
	return nn.ConfigErrorf(Section+"."+field, format, args...)
}

// tabled are the kinds with a table of labels.
var tabled = []string{Epsilon, V, X0}

// check checks the fields before defaults are filled in.
func (c Config) check() error {
	if c.Kind == "" {
		return bad("kind", "is missing; choose one of %s", strings.Join(Kinds, ", "))
	}
	if wrong := suggest.OneOf(c.Kind, Kinds); wrong != "" {
		return bad("kind", "%s", wrong)
	}
	toData := 0.0
	if c.ToData {
		toData = 1
	}
	for _, f := range []struct {
		name  string
		value float64
		kinds []string // that take it
	}{
		{"sigma_data", c.SigmaData, Kinds},
		{"sigma_min", c.SigmaMin, Kinds},
		{"sigma_max", c.SigmaMax, Kinds},
		{"beta_d", c.BetaD, []string{VP}},
		{"beta_min", c.BetaMin, []string{VP}},
		{"steps", c.Steps, []string{VP, Flow}},
		{"epsilon_t", c.EpsilonT, []string{VP}},
		{"alphas_cumprod", float64(len(c.AlphasCumprod)), tabled},
		{"timesteps", float64(len(c.Timesteps)), tabled},
		{"to_data", toData, []string{Flow}},
	} {
		switch {
		case f.value != 0 && !slices.Contains(f.kinds, c.Kind):
			return bad(f.name, "is no field of the kind %s; remove it", c.Kind)
		case !(f.value >= 0) || math.IsInf(f.value, 1):
			return bad(f.name, "must be positive and finite, got %v", f.value)
		}
	}
	switch {
	case c.SigmaMax != 0 && c.SigmaMin >= c.SigmaMax:
		return bad("sigma_max", "must lie above sigma_min = %v, got %v", c.SigmaMin, c.SigmaMax)
	case c.EpsilonT >= 1:
		return bad("epsilon_t", "must lie below 1, got %v", c.EpsilonT)
	case slices.Contains(tabled, c.Kind):
		return c.checkTable()
	}
	return nil
}

func (c Config) checkTable() error {
	n := len(c.AlphasCumprod)
	if n > maxTable {
		return bad("alphas_cumprod", "must hold at most %d values, got %d", maxTable, n)
	}
	used := n
	for used > 0 && c.AlphasCumprod[used-1] == 0 {
		used--
	}
	if used < 2 {
		return bad("alphas_cumprod", "must hold at least two values above 0, the ᾱ of every discrete time, got %d", used)
	}
	for i, v := range c.AlphasCumprod[:used] {
		if !(v > 0 && v < 1) || i > 0 && !(v < c.AlphasCumprod[i-1]) {
			return bad("alphas_cumprod", "must decrease strictly within (0, 1), from data to noise, got %v at %d", v, i)
		}
	}
	if c.Timesteps != nil && len(c.Timesteps) != n {
		return bad("timesteps", "must hold a label for each of the %d values of alphas_cumprod, got %d", n, len(c.Timesteps))
	}
	for i, v := range c.Timesteps {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return bad("timesteps", "must be finite, got %v at %d", v, i)
		}
	}
	return nil
}

// resolved fills in the defaults of the kind.
func (c Config) resolved() Config {
	c.SigmaData = cmp.Or(c.SigmaData, 0.5)
	switch c.Kind {
	case VP:
		c.BetaD, c.BetaMin = cmp.Or(c.BetaD, 19.9), cmp.Or(c.BetaMin, 0.1)
		c.Steps, c.EpsilonT = cmp.Or(c.Steps, 1000), cmp.Or(c.EpsilonT, 1e-5)
	case Flow:
		c.Steps = cmp.Or(c.Steps, 1)
	case Epsilon, V, X0:
		c.AlphasCumprod = slices.Clone(c.AlphasCumprod)
		c.Timesteps = slices.Clone(c.Timesteps)
		if c.Timesteps == nil {
			for i := range c.AlphasCumprod {
				c.Timesteps = append(c.Timesteps, float64(i))
			}
		}
	}
	return c
}
