package train

import (
	"math"
	"testing"
)

// emaOf returns one weight of the network and of its average.
func emaOf(t *testing.T, r *Run) (weight, average float64) {
	t.Helper()
	s := stateOf(t, r)
	return float64(s.Params[0][0]), float64(s.EMA[0][0])
}

// TestEMARampup: the average is ema ← ema + (1−β)(p−ema) with β = ½^(B/h), h the half-life or, if it is shorter, 0.05
// of the images seen before the step; so the first step makes the average the network.
func TestEMARampup(t *testing.T) {
	for name, c := range map[string]struct{ halflife, ramp float64 }{
		"ramped up": {1000, 0.05}, "reached": {0.0008, 0.05}, "off": {0.02, 0},
	} {
		cfg := tinyConfig(Pretrain)
		cfg.EMAHalflife = c.halflife
		if name == "off" {
			cfg.EMARampup = &c.ramp
		}
		r := start(t, cfg, Sources{Dataset: tinyData(t, 24)})
		_, want := emaOf(t, r)
		for i := range 4 {
			step(t, r, 1)
			h := c.halflife
			if c.ramp > 0 {
				h = min(h, c.ramp*0.008*float64(i))
			}
			p, got := emaOf(t, r)
			want += (1 - math.Pow(0.5, 0.008/h)) * (p - want)
			within(t, name, got, want, 1e-6*(1+math.Abs(want)))
			if i == 0 && (c.ramp > 0) != (got == p) {
				t.Errorf("%s: after one step the average is %v, the network %v", name, got, p)
			}
		}
	}
}

// TestEMARampupIsEDMs: a new network's run has EDM's 0.05, one that starts from a model none.
func TestEMARampupIsEDMs(t *testing.T) {
	fresh, err := tinyConfig(Pretrain).Resolve()
	if err != nil {
		t.Fatal(err)
	}
	cfg := tinyConfig(Isotropic)
	cfg.Network, cfg.Model = nil, "digits"
	from, err := cfg.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	if *fresh.EMARampup != 0.05 || *from.EMARampup != 0 {
		t.Errorf("%g for a new network, %g from a model", *fresh.EMARampup, *from.EMARampup)
	}
}

// TestAverageWarning: a warning if more than a quarter of the average is the network at the start.
func TestAverageWarning(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		kimg   float64
		want   string
	}{
		"ramped up":       {func(*Config) {}, 51.2, ""},
		"36 of 51 kimg":   {func(c *Config) { c.EMARampup = new(0.0) }, 51.2, "37 %"},
		"the paper's 500": {func(c *Config) { c.EMARampup, c.EMAHalflife = new(0.0), 500 }, 1200, ""},
		"EDM's 50000":     {func(c *Config) { c.EMARampup, c.EMAHalflife = new(0.0), 50000 }, 1200, "98 %"},
		"a frozen network's": {
			func(c *Config) { c.Stage, c.TrainNetwork, c.EMARampup = Isotropic, new(false), new(0.0) }, 1, "",
		},
		"a run's without steps": {func(c *Config) { c.EMARampup = new(0.0) }, 0, "100 %"},
	} {
		cfg := tinyConfig(Pretrain)
		cfg.Kimg, cfg.EMAHalflife = 1200, 0
		c.change(&cfg)
		warns(t, name, cfg, func(cfg Config) string { return cfg.averageWarning(c.kimg) }, c.want)
	}
}
