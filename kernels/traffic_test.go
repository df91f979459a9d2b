package kernels_test

import (
	"context"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// traffic counts what f copies to a device and back, in values of four bytes.
func traffic(dev *device.Device, f func()) (up, down int64) {
	before := dev.Stats()
	f()
	after := dev.Stats()
	return (after.BytesUp - before.BytesUp) / 4, (after.BytesDown - before.BytesDown) / 4
}

// ownModel is a toy in two subspaces on a device that no other test uses.
func ownModel(t *testing.T, plugin string) (*device.Device, *kernels.Model, *kernels.Weights) {
	t.Helper()
	dev, err := device.Open(device.Config{Plugin: plugin})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	m, w := modelOn(t, dev, kernels.Float32, toy{}, toyBasis(t, 2), toy{}.values(4))
	return dev, m, w
}

// TestTrafficOfTraining holds what crosses the bus in a step of B samples: up go the images and, per sample, a label
// and 2J numbers (g and ω), down 5J terms, whatever the size of the network and the images. Noise and probes are drawn
// on the device, its state stays there.
func TestTrafficOfTraining(t *testing.T) {
	t.Parallel()
	dev, m, _ := ownModel(t, "go")
	cfg := kernels.TrainerConfig{TrainNetwork: true, Estimate: true, Mode: kernels.Full}
	tr := newTrainer(t, m, cfg, toy{}.values(4))
	const b, j = 4, 2
	const rng, rates, norm = 3 * 2, 4, 1 // the random state is 64 bits wide
	for _, c := range []struct {
		name     string
		in       kernels.StepInput
		up, down int64
	}{
		{"whole", toyStep(0), b*(toyPixels+1+2*j) + rng + rates, b*5*j + norm},
		{
			"in parts", func() kernels.StepInput { in := toyStep(1); in.Part = 2; return in }(),
			b*(toyPixels+1+2*j) + rng + 2*rng + rates, b*5*j + norm,
		}, // and one random state per part
		{
			"at the network's own levels", func() kernels.StepInput { in := toyStep(2); in.NetworkG = in.G; return in }(),
			b*(toyPixels+1+3*j) + rng + rng + rates, b*5*j + norm,
		}, // two programs on the same images
	} {
		up, down := traffic(dev, func() { mustStep(t, tr, c.in) })
		if up != c.up || down != c.down {
			t.Errorf("%s: %d values up and %d down, want %d and %d", c.name, up, down, c.up, c.down)
		}
	}
}

// TestTrainingStateStaysInPlace: a step's outputs lie in the memory of the state that it is given, and nothing else is
// left over.
func TestTrainingStateStaysInPlace(t *testing.T) {
	t.Parallel()
	dev, m, _ := ownModel(t, "")
	tr := newTrainer(t, m, kernels.TrainerConfig{TrainNetwork: true}, toy{}.values(4))
	mustStep(t, tr, toyStep(0))
	held, memory := dev.Stats().BufferBytes, tr.StateMemory(t)
	for step := range int64(3) {
		in := toyStep(1 + step)
		in.Part = int(step) // whole, then in parts
		mustStep(t, tr, in)
		if now := dev.Stats().BufferBytes; now != held {
			t.Errorf("step %d leaves %d bytes on the device, want %d", step, now, held)
		}
		if now := tr.StateMemory(t); !slices.Equal(now, memory) {
			t.Errorf("after step %d parameters, moments and average lie at %p, before at %p", step, now, memory)
		}
	}
}

// TestTrafficOfSampling: up go the latents once and the solver's numbers, J per sample and evaluation and (1+h)J per
// combination of h evaluations. Nothing comes back before it is asked for.
func TestTrafficOfSampling(t *testing.T) {
	t.Parallel()
	dev, m, w := ownModel(t, "go")
	const b, j, h = 4, 2, 3
	ctx := context.Background()
	latents, coefficients, noise := make([]float32, b*toyPixels), make([]float64, b*j*h), make([]float32, b*toyPixels)
	ones := func() []float64 {
		v := make([]float64, b*j)
		for i := range v {
			v[i] = 1
		}
		return v
	}
	var path *kernels.Trajectory
	defer func() { path.Close() }()
	for _, c := range []struct {
		name     string
		up, down int64
		f        func() error
	}{
		{"start", b * (toyPixels + 1), 0, func() (err error) {
			path, err = m.NewTrajectory(w, latents, nil, h, b)
			return err
		}},
		{"evaluate", b * j, 0, func() error { return path.Evaluate(ctx, ones()) }},
		{"combine", b * j * (1 + h), 0, func() error { return path.Combine(ctx, ones(), coefficients) }},
		{"evaluate again", b * j, 0, func() error { return path.Evaluate(ctx, ones()) }},
		{"combine with history", b * j * (1 + h), 0, func() error { return path.Combine(ctx, ones(), coefficients) }},
		{"add noise", b * (toyPixels + j*(1+h)), 0, func() error { return path.AddNoise(ctx, noise, ones()) }},
		{"read", 0, b * toyPixels, func() error { return path.X(make([]float32, b*toyPixels)) }},
	} {
		up, down := traffic(dev, func() {
			if err := c.f(); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
		})
		if up != c.up || down != c.down {
			t.Errorf("%s: %d values up and %d down, want %d and %d", c.name, up, down, c.up, c.down)
		}
	}
}
