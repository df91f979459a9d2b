package train

import (
	"math"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/kernels/unet"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// tinyModel is an untrained network.
func tinyModel(t *testing.T) *checkpoint.Model {
	t.Helper()
	net, err := unet.Parse([]byte(tinyNetwork))
	if err != nil {
		t.Fatal(err)
	}
	return &checkpoint.Model{Net: net, Values: net.Init(0)}
}

// fromModel is tinyConfig from a model.
func fromModel(stage string) Config {
	cfg := tinyConfig(stage)
	cfg.Network, cfg.Model, cfg.Init, cfg.Keep = nil, "tiny", "edm", "energy"
	return cfg
}

// look measures a candidate as e, in all parts alike, and has the run keep it if it is the best.
func look(t *testing.T, r *Run, end bool, e float64) {
	t.Helper()
	c, err := r.Candidate(t.Context(), end)
	if err != nil || c == nil {
		t.Fatalf("no candidate at step %d: %v", r.step, err)
	}
	defer c.Close()
	energies, err := c.Energies(t.Context(), nil)
	if err != nil || len(energies) != LookParts || !(slices.Min(energies) > 0) {
		t.Fatalf("energies %v, error %v", energies, err)
	}
	for i := range energies {
		energies[i] = e
	}
	if err := r.Keep(c, energies, nil, nil); err != nil {
		t.Fatal(err)
	}
}

// TestARunKeepsItsBestState: the model is that of the best look, of the start as well as of a later one, in a run that
// is resumed, too; and looking changes no step.
func TestARunKeepsItsBestState(t *testing.T) {
	d, model := tinyData(t, 20), tinyModel(t)
	cfg := fromModel(Anisotropic)
	src := Sources{Dataset: d, Model: model}
	r := start(t, cfg, src)
	saved := func(r *Run) (value, g float64) {
		m, err := r.Model(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		v, _ := m.Schedule.At(0, 0).Eval(30)
		return float64(m.Values[0][0]), v
	}
	look(t, r, false, 10)
	value0, g0 := saved(r)
	step(t, r, 2)
	if c, err := r.Candidate(t.Context(), false); c != nil || err != nil {
		t.Fatalf("a look is due after a tenth of the length: %v", err)
	}
	look(t, r, true, 11)
	if value, g := saved(r); value != value0 || g != g0 {
		t.Errorf("a worse state is kept: %v and %v, the start has %v and %v", value, g, value0, g0)
	}
	rows := step(t, r, 3)
	look(t, r, true, 9)
	value5, g5 := saved(r)
	if value5 == value0 || g5 == g0 {
		t.Error("the better state is that of the start")
	}
	step(t, r, 5)
	look(t, r, false, 9.5)
	if value, g := saved(r); value != value5 || g != g5 {
		t.Errorf("the last state is kept: %v and %v, the best has %v and %v", value, g, value5, g5)
	}

	again := resume(t, stored(t, r), Sources{Dataset: d})
	if value, g := saved(again); value != value5 || g != g5 {
		t.Errorf("resumed, it keeps %v and %v, want %v and %v", value, g, value5, g5)
	}
	if o := again.Outcome(); o.Best.Step != 5 || o.Last.Step != 10 || o.Looks != 4 || o.Moved == nil {
		t.Errorf("outcome %+v", o)
	}
	m, o, err := StoredModel(stored(t, r))
	if err != nil || float64(m.Values[0][0]) != value5 || o.Best.Step != 5 {
		t.Errorf("stored model %v of %+v, error %v", m.Values[0][0], o, err)
	}

	blind := start(t, cfg, src)
	step(t, blind, 2)
	if !slices.EqualFunc(step(t, blind, 3), rows, equalRows) {
		t.Error("steps of a run that looks are not those of one that does not")
	}
}

// TestAScheduleThatStays: the network is trained by the trajectory loss, and the path is what it was.
func TestAScheduleThatStays(t *testing.T) {
	cfg := fromModel(Isotropic)
	cfg.TrainSchedule = new(false)
	r := start(t, cfg, Sources{Dataset: tinyData(t, 16), Model: tinyModel(t)})
	before, _ := r.Schedule().At(0, 0).Knots()
	rows := step(t, r, 3)
	after, _ := r.Schedule().At(0, 0).Knots()
	if !slices.Equal(before, after) || r.Moved() != nil {
		t.Errorf("the path has moved: %+v", r.Moved())
	}
	moving := fromModel(Isotropic)
	same := start(t, moving, Sources{Dataset: tinyData(t, 16), Model: tinyModel(t)})
	first := step(t, same, 1)[0]
	if row := rows[0]; row.LR == 0 || !math.IsNaN(row.ScheduleGradNorm) || math.Abs(row.Energy/first.Energy-1) > 1e-5 {
		t.Errorf("row %+v, want the energy %v and no gradient of the schedule", row, first.Energy)
	}
}

// TestRatiosByDefault: in the stage anisotropic a network that is trained sees the ratios, unless that is refused; the
// configuration says so.
func TestRatiosByDefault(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Config)
		sees   bool
	}{
		"by default": {func(*Config) {}, true},
		"refused":    {func(c *Config) { c.RatioEmbedding = new(false) }, false},
		"frozen":     {func(c *Config) { c.TrainNetwork = new(false) }, false},
	} {
		cfg := fromModel(Anisotropic)
		c.change(&cfg)
		r := start(t, cfg, Sources{Dataset: tinyData(t, 16), Model: tinyModel(t)})
		if got := *r.Config().RatioEmbedding; got != c.sees || r.model.SeesAll() != c.sees {
			t.Errorf("%s: configured %v, sees all of g: %v", name, got, r.model.SeesAll())
		}
	}
}
