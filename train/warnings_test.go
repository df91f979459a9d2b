package train

import (
	"math"
	"strings"
	"testing"
)

// rowsOf returns rows of batches of eight.
func rowsOf(n int, change func(i int, row *Row)) []Row {
	rows := make([]Row, n)
	for i := range rows {
		rows[i] = emptyRow()
		rows[i].Step, rows[i].Kimg = int64(i+1), float64(8*(i+1))/1000
		change(i, &rows[i])
	}
	return rows
}

// warns checks that a warning of the resolved configuration has want in it, or for "" that there is none.
func warns(t *testing.T, name string, cfg Config, warning func(Config) string, want string) {
	t.Helper()
	cfg, err := cfg.Resolve()
	if err != nil {
		t.Fatal(err)
	}
	if got := warning(cfg); (got == "") != (want == "") || !strings.Contains(got, want) {
		t.Errorf("%s: %q, want %q", name, got, want)
	}
}

// TestRateWarning: a run of 0.16 kimg, 20 steps, that ends where its rate is above half of its highest.
func TestRateWarning(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		steps  int
		want   string
	}{
		"before its middle":       {func(*Config) {}, 9, "has seen 0.072, and lr is at 100 % of its highest"},
		"after a little fall":     {func(*Config) {}, 14, "create it with kimg 0.112"},
		"after most of the fall":  {func(*Config) {}, 17, ""},
		"at its end":              {func(*Config) {}, 20, ""},
		"without a fall":          {func(c *Config) { c.LRRamp = RampConstant }, 9, ""},
		"with a small fall":       {func(c *Config) { c.LRFinal = 0.6 }, 9, ""},
		"while it warms up":       {func(c *Config) { c.LRWarmup = 10 }, 9, "100 %"},
		"of the paper":            {func(c *Config) { c.LRRamp = RampPublished }, 9, "100 %"},
		"with a frozen network":   {func(c *Config) { c.Stage, c.TrainNetwork = Isotropic, new(false) }, 4, "schedule_lr"},
		"the same, most has gone": {func(c *Config) { c.Stage, c.TrainNetwork = Isotropic, new(false) }, 13, ""},
		"without a step":          {func(*Config) {}, 0, ""},
	} {
		cfg := tinyConfig(Pretrain)
		c.change(&cfg)
		warns(t, name, cfg, func(cfg Config) string {
			return cfg.rateWarning(rowsOf(c.steps, func(i int, row *Row) {
				from, to := 0.008*float64(i), 0.008*float64(i+1)
				row.LR, row.ScheduleLR = cfg.networkRamp().At(from, to), cfg.scheduleRamp().At(from, to)
			}))
		}, c.want)
	}
}

// TestGradientWarning: a warning if the gradients of ten steps or more have no direction in common.
func TestGradientWarning(t *testing.T) {
	turn := func(i int) float64 { return 0.3 * float64(1-i%2*2) } // by turns 0.3 and −0.3
	for name, c := range map[string]struct {
		cosine func(i int) float64
		steps  int
		noise  bool
	}{
		"no direction":             {turn, 10, true},
		"no direction, few steps":  {turn, 9, false},
		"a weak one, in ten steps": {func(i int) float64 { return 0.1 + turn(i) }, 10, true},
		"and in a hundred":         {func(i int) float64 { return 0.1 + turn(i) }, 100, false},
		"unknown":                  {func(int) float64 { return math.NaN() }, 10, false},
	} {
		got := gradientWarning(rowsOf(c.steps, func(i int, row *Row) { row.ScheduleGradCosine = c.cosine(i) }))
		if (got != "") != c.noise {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestMovementWarning: rates that add up to less than 0.1 over the planned steps; the rate of the advice adds up to it.
func TestMovementWarning(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		want   string
	}{
		"100 constant steps":       {func(c *Config) { c.ScheduleLRRamp = RampConstant }, "up to 0.05 over 100 steps"},
		"its advice":               {func(c *Config) { c.ScheduleLRRamp, c.ScheduleLR = RampConstant, 0.0011 }, ""},
		"the same, of cosine":      {func(*Config) {}, "schedule_lr 0.0019 or more"},
		"its advice, of cosine":    {func(c *Config) { c.ScheduleLR = 0.0019 }, ""},
		"a longer run":             {func(c *Config) { c.Kimg = 8 }, ""},
		"a run without an end":     {func(c *Config) { c.Kimg = 1e200 }, ""},
		"the same, at no rate":     {func(c *Config) { c.Kimg, c.ScheduleLR = 1e15, 1e-30 }, "hardly move"},
		"a run without a schedule": {func(c *Config) { c.Stage = Pretrain }, ""},
	} {
		cfg := tinyConfig(Isotropic)
		cfg.Kimg, cfg.ScheduleLR = 0.8, 5e-4
		c.change(&cfg)
		warns(t, name, cfg, func(cfg Config) string { return strings.Join(cfg.MovementWarning(), "; ") }, c.want)
	}
}
