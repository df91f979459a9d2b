package kernels_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/internal/devicetest"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/unet"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// newReplicas starts a trainer on each of some devices.
func newReplicas(t *testing.T, on []*device.Device, net kernels.Network, b *basis.Basis, cfg kernels.TrainerConfig,
	init [][]float32,
) *kernels.Replicas {
	t.Helper()
	m, err := kernels.NewModel(on[0], net, b)
	if err != nil {
		t.Fatal(err)
	}
	r, err := m.NewReplicas(on, cfg, init)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(); m.Close() })
	return r
}

// trainer is what a Trainer and Replicas have in common.
type trainer interface {
	Step(context.Context, kernels.StepInput) (kernels.StepOutput, error)
	Export(context.Context) (*kernels.TrainerState, error)
}

// sameSteps fails unless steps report the same bits, and leave the same.
func sameSteps(t *testing.T, got, want trainer, steps ...kernels.StepInput) {
	t.Helper()
	for _, in := range steps {
		a, err := got.Step(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		b, err := want.Step(t.Context(), in)
		if err != nil {
			t.Fatal(err)
		}
		if math.Float64bits(a.GradNorm) != math.Float64bits(b.GradNorm) || !slices.Equal(a.Loss, b.Loss) ||
			!reflect.DeepEqual(a.Terms, b.Terms) || a.Skipped != b.Skipped {
			t.Fatalf("step %d of %d images in parts of %d:\n%+v %+v\nwant\n%+v %+v", in.Step,
				len(in.Images)/toyPixels, in.Part, a, a.Terms, b, b.Terms)
		}
		if a.FLOPs != b.FLOPs {
			t.Errorf("step %d: %d FLOPs, want %d", in.Step, a.FLOPs, b.FLOPs)
		}
	}
	sameBits(t, "the state", got, want)
}

func sameBits(t *testing.T, what string, got, want trainer) {
	t.Helper()
	a, err := got.Export(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b, err := want.Export(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(a, b) {
		t.Errorf("%s has other bits", what)
	}
}

// TestDevicesAreParts: steps on two, three and four devices have the bits of steps on one that takes the batch in the
// same parts, in every estimator, with subspaces of every kind, whatever the parts: as many as devices, more, fewer,
// the last one smaller.
func TestDevicesAreParts(t *testing.T) {
	devices := devicetest.Several(t)
	classes := vectorsOf(t, []int{0, 1, 2})
	for _, c := range []struct {
		name  string
		net   toy
		basis *basis.Basis
		cfg   kernels.TrainerConfig
		own   bool // the network has noise levels of its own
	}{
		{name: "backprop", cfg: kernels.TrainerConfig{TrainNetwork: true, Estimate: true, Mode: kernels.Backprop}},
		{
			name: "full, by probes on the sphere", net: toy{ratios: 2}, basis: toyBasis(t, 3),
			cfg: kernels.TrainerConfig{
				TrainNetwork: true, Estimate: true, Mode: kernels.Full, Probe: kernels.Sphere, Probes: 2,
			},
		},
		{
			name: "explicit, dense per class", basis: dense(t, classes),
			cfg: kernels.TrainerConfig{TrainNetwork: true, Estimate: true, Mode: kernels.Explicit},
		},
		{
			name: "noise levels of its own", net: toy{ratios: 1}, basis: toyBasis(t, 2), own: true,
			cfg: kernels.TrainerConfig{TrainNetwork: true, Estimate: true, Mode: kernels.Backprop},
		},
		{
			name: "frozen", basis: toyBasis(t, 2),
			cfg: kernels.TrainerConfig{Estimate: true, Mode: kernels.Full, Probe: kernels.Gaussian},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			values, j := c.net.values(4), 1
			if c.basis != nil {
				j = c.basis.J()
			}
			step := func(k int64, n, part int) kernels.StepInput {
				b := labelled(uint64(200+k), n, j)
				in := kernels.StepInput{
					Images: narrow(b.X0), Labels: b.Labels, G: b.G, Omega: b.Omega,
					Seed: 42, Step: k, LR: 1e-2, EMABeta: 0.9, Clip: 5, Part: part,
				}
				if c.own {
					in.NetworkG = slices.Clone(in.G)
					slices.Reverse(in.NetworkG)
				}
				return in
			}
			for _, n := range []int{2, 3, 4} {
				if n == 3 && c.name != "backprop" {
					continue
				}
				one := newReplicas(t, devices[:1], c.net, c.basis, c.cfg, values)
				several := newReplicas(t, devices[:n], c.net, c.basis, c.cfg, values)
				sameSteps(t, several, one, step(1, 7, 2), step(2, 3, 2), step(3, 2, 2), step(4, 7, 2))
				for k := range n {
					sameBits(t, fmt.Sprintf("device %d of %d", k, n), several.At(k), one)
				}
			}
		})
	}
}

// TestDevicesDropAlike: dropout is that of a part, whichever device takes it; and parts are not the whole batch.
func TestDevicesDropAlike(t *testing.T) {
	devices := devicetest.Several(t)
	cfg := unet.Defaults("SongUNet")
	cfg.ImgResolution, cfg.ImgChannels, cfg.LabelDim = kernels.Square(toySide), toyChannels, toyLabels
	cfg.ModelChannels, cfg.ChannelMult, cfg.NumBlocks, cfg.AttnResolutions, cfg.Dropout = 8, []int{1}, 1, nil, 0.5
	net, err := unet.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	train, values := kernels.TrainerConfig{TrainNetwork: true}, net.Init(1)
	var steps []kernels.StepInput
	for k := range int64(2) {
		b := toyBatch(uint64(k), 5, 1)
		steps = append(steps, kernels.StepInput{
			Images: narrow(b.X0), Labels: b.Labels, G: b.G, Omega: b.Omega, Seed: 42, Step: k, LR: 1e-2, EMABeta: 0.9, Part: 2,
		})
	}
	several := newReplicas(t, devices[:2], net, nil, train, values)
	sameSteps(t, several, newReplicas(t, devices[:1], net, nil, train, values), steps...)
}

// TestDevicesSkipTogether: a gradient that is not a number on one device changes no state on any.
func TestDevicesSkipTogether(t *testing.T) {
	devices, net := devicetest.Several(t), toy{}
	r := newReplicas(t, devices, net, nil, kernels.TrainerConfig{TrainNetwork: true}, net.values(4))
	b := toyBatch(7, 8, 1)
	in := kernels.StepInput{
		Images: narrow(b.X0), G: b.G, Omega: b.Omega, Seed: 42, Step: 1, LR: 1e-2, EMABeta: 0.9, Part: 2,
	}
	before, err := r.Export(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	in.Images[5*toyPixels] = float32(math.NaN()) // of device 2's part
	out, err := r.Step(t.Context(), in)
	if err != nil || !out.Skipped {
		t.Fatalf("%+v, error %v", out, err)
	}
	for k := range devices {
		after, err := r.At(k).Export(t.Context())
		if err != nil || !reflect.DeepEqual(after, before) {
			t.Errorf("device %d has moved, or: %v", k, err)
		}
	}
	in.Images[5*toyPixels] = 0
	if out, err := r.Step(t.Context(), in); err != nil || out.Skipped || r.Count() != 1 {
		t.Errorf("the next step: %+v, error %v, %d counted", out, err, r.Count())
	}
}

// TestLossOfOneDevice: where one device's state is lost all are, until they are restored.
func TestLossOfOneDevice(t *testing.T) {
	devices, net := devicetest.Several(t)[:2], toy{}
	cfg := kernels.TrainerConfig{TrainNetwork: true}
	r := newReplicas(t, devices, net, nil, cfg, net.values(4))
	b := toyBatch(7, 4, 1)
	in := kernels.StepInput{
		Images: narrow(b.X0), G: b.G, Omega: b.Omega, Seed: 42, Step: 1, LR: 1e-2, EMABeta: 0.9, Part: 2,
	}
	state, err := r.Export(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Step(ended, in); !errors.Is(err, context.Canceled) {
		t.Errorf("a step that was ended before it began: %v", err)
	}
	bad := in
	bad.G = bad.G[1:]
	if _, err := r.Step(t.Context(), bad); err == nil || !strings.Contains(err.Error(), "g must hold 4") {
		t.Errorf("variances of three samples for four: %v", err)
	}
	for name, part := range map[string]int{"parts": 2, "whole": 0} {
		in.Part = part
		if err := r.Restore(state); err != nil {
			t.Fatal(err)
		}
		r.LoseShare(1)
		if _, err := r.Step(t.Context(), in); err == nil {
			t.Errorf("%s: the step is taken with a state that is gone", name)
		}
		_, step := r.Step(t.Context(), in)
		_, export := r.Export(t.Context())
		_, average := r.Average()
		_, publish := r.Publish(t.Context())
		for what, err := range map[string]error{"step": step, "export": export, "average": average, "publish": publish} {
			if !errors.Is(err, kernels.ErrStateLost) {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
	}
	if err := r.Restore(state); err != nil {
		t.Fatal(err)
	}
	in.Part = 2
	sameSteps(t, r, newReplicas(t, devices[:1], net, nil, cfg, net.values(4)), in)
	r.Close()
	if _, err := r.Step(t.Context(), in); !errors.Is(err, kernels.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// TestReplicasFreeTheirMemory on every device.
func TestReplicasFreeTheirMemory(t *testing.T) {
	devices, net := devicetest.Several(t), toy{}
	held := func() (bytes []int64) {
		for _, d := range devices {
			bytes = append(bytes, d.Stats().BufferBytes)
		}
		return bytes
	}
	before, b := held(), dense(t, map[int][][]float64{basis.Shared: vectorsOf(t, []int{0, 1, 2})[0]})
	m, err := kernels.NewModel(devices[0], net, b)
	if err != nil {
		t.Fatal(err)
	}
	r, err := m.NewReplicas(devices, kernels.TrainerConfig{TrainNetwork: true, Estimate: true}, net.values(4))
	if err != nil {
		t.Fatal(err)
	}
	in := toySteps(1)
	in.Part = 2
	if _, err := r.Step(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	for k, now := range held() {
		if now <= before[k] {
			t.Errorf("device %d holds nothing", k)
		}
	}
	r.Close()
	m.Close()
	if after := held(); !slices.Equal(after, before) {
		t.Errorf("the devices hold %v bytes, before %v", after, before)
	}
}
