package train

import (
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/internal/base/setting"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/data"
	"github.com/anisoflight/anisoflight/train/passes"
)

// deviceAsker answers with a run's own network: in training with the noise that the run draws on the device, so that
// the terms are the same to the bit.
type deviceAsker struct {
	tb   testing.TB
	run  *Run
	data *data.Dataset
}

func (a deviceAsker) Ask(ctx context.Context, q passes.Question) (*kernels.Terms, error) {
	n := len(q.Images)
	images := make([]float32, 16*n)
	for i, at := range q.Images {
		if err := a.data.Image(int(at), false, images[16*i:16*i+16]); err != nil {
			a.tb.Fatal(err)
		}
		if got := a.data.Label(int(at)); got != q.Labels[i] {
			a.tb.Errorf("image %d has the label %d, want %d", at, q.Labels[i], got)
		}
	}
	if q.Mode != kernels.LossOnly {
		out, err := a.run.trainer.Step(ctx, kernels.StepInput{
			Images: images, Labels: q.Labels, G: q.G, Omega: q.Omega, Seed: a.run.cfg.Seed, Step: q.Step,
		})
		return out.Terms, err
	}
	eps := make([]float32, 16*n)
	for i, seed := range q.Noise {
		latent.Normal(seed, passes.NoiseStream, eps[16*i:16*i+16])
	}
	w, err := a.run.trainer.Publish(ctx)
	if err != nil {
		return nil, err
	}
	defer w.Release()
	return a.run.model.Estimate(ctx, w, kernels.EstimateInput{
		Mode: q.Mode, X0: images, Eps: eps, G: q.G, Omega: q.Omega, Labels: q.Labels,
	})
}

// TestRemoteIsARun: given the terms of a run with a frozen network, a Remote takes the run's steps to the bit, for each
// estimator, shared and per class, in one subspace and in two, whatever it starts from.
func TestRemoteIsARun(t *testing.T) {
	for name, set := range map[string]func(*Config){
		"backprop": func(*Config) {},
		"full of two subspaces, per class": func(c *Config) {
			c.Stage, c.Family = Anisotropic, schedule.Family{PerClass: true, Basis: "dct"}
		},
		"explicit from the geodesic": func(c *Config) { c.Estimator, c.Init = "explicit", "geodesic" },
	} {
		t.Run(name, func(t *testing.T) {
			cfg := tinyConfig(Isotropic)
			cfg.TrainNetwork, cfg.Flip, cfg.C = new(false), false, 1
			set(&cfg)
			samples := passes.Samples{Height: 4, Width: 4, Channels: 1, Images: 24}
			var src Sources
			if cfg.Family.PerClass {
				// the classes one after the other, as a Remote numbers images
				src.Dataset = labelledData(t, 24, func(i int) int { return i / 12 })
				samples.Counts = []int{12, 12}
			} else { // exact, and quick to compile
				cfg.Network = nil
				src.Analytic, src.Dataset = gaussian(t, basis.None(4, 4), []float64{0.3}, 24)
			}
			d := src.Dataset
			run, other := start(t, cfg, src), start(t, cfg, src)
			r, err := NewRemote(cfg, samples, Sources{}, deviceAsker{t, other, d})
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Start(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			rows := step(t, run, 4)
			for i := range rows {
				row, err := r.Step(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				row.Seconds, rows[i].GFLOPS, rows[i].MFU = 0, math.NaN(), math.NaN()
				if !equalRows(row, rows[i]) {
					t.Fatalf("row %d is %v, the run's %v", i+1, row, rows[i])
				}
			}
			got := r.Schedule()
			want := run.Schedule()
			for row := range want.Rows() {
				for j := range want.J() {
					_, a := got.At(row, j).Knots()
					_, b := want.At(row, j).Knots()
					if !slices.Equal(a, b) {
						t.Errorf("path %d of row %d is %v, the run's %v", j, row, a, b)
					}
				}
			}
			if r.Steps() != 20 { // 0.16 kimg in batches of 8
				t.Errorf("%d steps, want 20", r.Steps())
			}
		})
	}
}

// broken answers with an error.
type broken struct{}

var errBroken = errors.New("no answer")

func (broken) Ask(context.Context, passes.Question) (*kernels.Terms, error) { return nil, errBroken }

func TestRemoteThatIsNotAnsweredStaysAsItWas(t *testing.T) {
	r, err := NewRemote(Config{Batch: 4}, passes.Samples{Height: 4, Width: 4, Channels: 1, Images: 9}, Sources{},
		broken{})
	if err != nil {
		t.Fatal(err)
	}
	before := r.Schedule()
	if _, err := r.Step(t.Context()); !errors.Is(err, errBroken) {
		t.Fatalf("the error is %v", err)
	}
	if after := r.Schedule(); after != before || len(r.Rows(0)) != 0 {
		t.Error("the schedule has moved without an answer")
	}
}

func TestRemoteSettings(t *testing.T) {
	whole := passes.Samples{Height: 4, Width: 4, Channels: 1, Images: 8, Counts: []int{4, 4}}
	for _, q := range []struct {
		field string
		cfg   Config
		of    func(*passes.Samples)
	}{
		{"images", Config{}, func(s *passes.Samples) { s.Images, s.Counts = 0, nil }},
		{"counts", Config{}, func(s *passes.Samples) { s.Counts = []int{9, -1} }},
		{"counts", Config{}, func(s *passes.Samples) { s.Counts = []int{4, 5} }},
		{"family", Config{Family: schedule.Family{PerClass: true}}, func(s *passes.Samples) { s.Counts = nil }},
		{"family.k", Config{Family: schedule.Family{K: 4}}, nil},
	} {
		s := whole
		if q.of != nil {
			q.of(&s)
		}
		_, err := NewRemote(q.cfg, s, Sources{}, broken{})
		var field *setting.Error
		if !errors.As(err, &field) || field.Field != q.field {
			t.Errorf("%s: %v", q.field, err)
		}
	}
}

// The fields that a Remote takes are fields of a Config.
func TestRemoteFields(t *testing.T) {
	var names []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[Config]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	for _, name := range RemoteFields {
		if !slices.Contains(names, name) {
			t.Errorf("%q is no field of Config: %s", name, strings.Join(names, " "))
		}
	}
}
