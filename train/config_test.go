package train

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/internal/base/setting"
	"github.com/anisoflight/anisoflight/internal/testing/traintest"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train/passes"
)

func TestConfigErrorsNameTheField(t *testing.T) {
	nan := math.NaN()
	for field, change := range map[string]func(*Config){
		"stage":             func(c *Config) { c.Stage = "second" },
		"batch":             func(c *Config) { c.Batch = -1 },
		"kimg":              func(c *Config) { c.Kimg = math.Inf(1) },
		"lr":                func(c *Config) { c.LR = -1 },
		"lr_ramp":           func(c *Config) { c.LRRamp = "linear" },
		"lr_warmup":         func(c *Config) { c.LRWarmup = -1 },
		"lr_hold":           func(c *Config) { c.LRHold = &nan },
		"lr_final":          func(c *Config) { c.LRFinal = 2 },
		"beta2":             func(c *Config) { c.Beta2 = 1 },
		"ema_halflife_kimg": func(c *Config) { c.EMAHalflife = -1 },
		"ema_rampup":        func(c *Config) { c.EMARampup = &nan },
		"T":                 func(c *Config) { c.T = nan },
		"g0":                func(c *Config) { c.G0 = -1 },
		"knots":             func(c *Config) { c.Knots = 1 },
		"init":              func(c *Config) { c.Init = "linear" },
		"schedule":          func(c *Config) { c.Init = "table" },
		"init of a name":    func(c *Config) { c.Init, c.Schedule = "geodesic", "x" },
		"c":                 func(c *Config) { c.C = -1 },
		"schedule_lr":       func(c *Config) { c.ScheduleLR = nan },
		"schedule_lr_ramp":  func(c *Config) { c.ScheduleLRRamp = "step" },
		"schedule_beta1":    func(c *Config) { c.ScheduleBeta1 = 1.5 },
		"schedule_lr_hold":  func(c *Config) { c.ScheduleLRHold = -0.1 },
		"estimator":         func(c *Config) { c.Estimator = "exact" },
		"probe":             func(c *Config) { c.Probe = "cauchy" },
		"probes":            func(c *Config) { c.Probes = -2 },
		"family":            func(c *Config) { c.Family.Basis = "dct" },
		"ratio_embedding":   func(c *Config) { c.RatioEmbedding = new(true) },
		"p_mean":            func(c *Config) { c.PMean = &nan },
		"p_std":             func(c *Config) { c.PStd = -1 },
		"p_std_subspace":    func(c *Config) { c.PStdSubspace = new(-1.0) },
		"microbatch":        func(c *Config) { c.Microbatch = -1 },
		"clip":              func(c *Config) { c.Clip = nan },
		"network":           func(c *Config) { c.Model = "digits" },
		"network.label_dim": func(c *Config) {
			c.Network = json.RawMessage(`{"img_resolution":4,"img_channels":1,` +
				`"label_dim":-1}`)
		},
		"dataset": func(c *Config) {
			c.Network = json.RawMessage(`{"model_type":"SongUNet","img_resolution":8,"img_channels":1}`)
		},
		"schedule_lr_warmup": func(c *Config) { c.ScheduleLRWarmup = math.Inf(1) },
		"train_network":      func(c *Config) { c.Stage, c.TrainNetwork = Pretrain, new(false) },
		"train_schedule":     func(c *Config) { c.TrainSchedule, c.TrainNetwork = new(false), new(false) },
		"keep":               func(c *Config) { c.Keep = "energy" },
		"for_nfe":            func(c *Config) { c.ForNFE = 9 },
	} {
		cfg := tinyConfig(Isotropic)
		change(&cfg)
		_, err := New(cfg, Sources{Device: traintest.Device(t), Dataset: tinyData(t, 16)})
		var e *setting.Error
		if field, _, _ := strings.Cut(field, " "); !errors.As(err, &e) || e.Field != field {
			t.Errorf("%s: error %v", field, err)
		}
	}
	_, err := Config{Stage: Isotropic, Kimg: -3}.Resolve()
	if err == nil || err.Error() != "kimg must be positive, got -3" {
		t.Errorf("the form of errors: %v", err)
	}
}

// TestConstantsComeFromAModel: a config.json does not hold the values of a network's constants, and zeros are not them.
func TestConstantsComeFromAModel(t *testing.T) {
	config := `{"model_type":"Graph","img_resolution":4,"img_channels":1,"label_dim":0,"graph":{"nodes":[
		{"name":"x","op":"input","target":"sample","shape":[{"batch":1},1,4,4],"dtype":"float32"},
		{"name":"f","op":"param","target":"filter","shape":[4,4],"dtype":"float32","frozen":true},
		{"name":"y","op":"mul.Tensor","args":{"self":"%x","other":"%f"}}],"output":"y"}}`
	_, _, err := network(Config{Network: json.RawMessage(config)}, Sources{})
	var e *setting.Error
	if !errors.As(err, &e) || e.Field != "network" || !strings.Contains(err.Error(), "the constant filter") {
		t.Errorf("got error %v; want one of network that names the constant filter", err)
	}
}

// TestTheSchedulesRateFollowsItsStart: a form is learned at the paper's rate; a path that was measured or learned at
// one by which it can go as far in a run of any length, as long as no step is too large.
func TestTheSchedulesRateFollowsItsStart(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want float64
	}{
		{Config{Stage: Isotropic}, 1e-2},
		{Config{Stage: Isotropic, Model: "m", Init: "edm"}, 1e-2},
		{Config{Stage: Isotropic, Model: "m", Batch: 100, Kimg: 100, ScheduleLRRamp: RampConstant}, 1.2e-3},
		{Config{Stage: Isotropic, Schedule: "s", Batch: 100, Kimg: 200, ScheduleLRRamp: RampConstant}, 6e-4},
		{Config{Stage: Isotropic, Init: "geodesic", Batch: 100, Kimg: 5}, 2e-2},
		{Config{Stage: Anisotropic, Model: "m", Batch: 100, Kimg: 100, ScheduleLRRamp: RampConstant}, 1.2e-3},
		{Config{Stage: Isotropic, Model: "m", ScheduleLR: 0.5}, 0.5},
	} {
		got, err := c.cfg.Resolve()
		if err != nil || math.Abs(got.ScheduleLR-c.want) > 1e-9 {
			t.Errorf("%+v: rate %v, error %v, want rate %v", c.cfg, got.ScheduleLR, err, c.want)
		}
	}
}

// TestWhereAScheduleStarts: a named schedule must agree with T; a model's own serves only where nothing else is asked
// for. A new one ends where the data say, and c is theirs.
func TestWhereAScheduleStarts(t *testing.T) {
	d := tinyData(t, 16)
	law, _, err := passes.MeasureSpectrum(t.Context(), d, nil)
	if err != nil {
		t.Fatal(err)
	}
	scale := passes.ScaleOf(law)
	own := edm(t, 400, 1e-9)
	model := tinyModel(t)
	model.Schedule = own
	for _, c := range []struct {
		name   string
		change func(*Config, *Sources)
		T      float64
		knots  int
		field  string
	}{
		{"the model's own", func(*Config, *Sources) {}, 400, 16, ""},
		{"the model's own on more knots", func(c *Config, _ *Sources) { c.Knots = 20 }, 400, 20, ""},
		{"another T", func(c *Config, _ *Sources) { c.T = 100 }, 100, 32, ""},
		{"init", func(c *Config, _ *Sources) { c.Init = "cosine" }, scale.T, 32, ""},
		{"named", func(c *Config, s *Sources) { c.Schedule, s.Schedule = "x", edm(t, 64, 1e-9) }, 64, 16, ""},
		{
			"named, another T", func(c *Config, s *Sources) { c.Schedule, s.Schedule, c.T = "x", edm(t, 64, 1e-9), 100 }, 0, 0,
			"T",
		},
		{"named, two subspaces", func(c *Config, s *Sources) {
			c.Schedule = "x"
			s.Schedule, err = own.Expand(schedule.Family{Basis: "dct"}, nil, 2)
		}, 0, 0, "schedule"},
	} {
		cfg := Config{Stage: Isotropic, Model: "m", Batch: 8}
		src := Sources{Device: traintest.Device(t), Dataset: d, Model: model}
		c.change(&cfg, &src)
		r, err := New(cfg, src)
		var e *setting.Error
		switch {
		case c.field != "":
			if !errors.As(err, &e) || e.Field != c.field {
				t.Errorf("%s: error %v, want one about %q", c.name, err, c.field)
			}
			continue
		case err != nil:
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if r.Schedule().T() != c.T || len(r.theta[0][0]) != c.knots-1 || r.Config().T != c.T || r.Config().C != scale.C {
			t.Errorf("%s: T %v, c %v, %d parameters", c.name, r.Schedule().T(), r.Config().C, len(r.theta[0][0]))
		}
		r.Close()
	}
}
