package kernels_test

import (
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/internal/testing/processestest"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/processes"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// trainOn starts a trainer of a toy on some devices.
func trainOn(t *testing.T, on []*device.Device, net toy, b *basis.Basis, cfg kernels.TrainerConfig,
) *kernels.Trainer {
	t.Helper()
	m, err := kernels.NewModel(on[0], net, b)
	if err != nil {
		t.Fatal(err)
	}
	tr, err := m.NewTrainer(cfg, net.values(4), on[1:]...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close(); m.Close() })
	return tr
}

// stepOf is a step on n images of every class.
func stepOf(step int64, n, j, part int) kernels.StepInput {
	in := stepOn(labelled(uint64(200+step), n, j), step)
	in.Clip, in.Part = 5, part
	return in
}

// takeSteps takes steps as every process of a job, and returns what process 0 reports and what the last step of each
// returns.
func takeSteps(t *testing.T, of []*kernels.Trainer, steps ...kernels.StepInput) ([]kernels.StepOutput, []error) {
	t.Helper()
	outs, errs := make([]kernels.StepOutput, len(steps)), make([]error, len(of))
	var all sync.WaitGroup
	for k, tr := range of {
		all.Go(func() {
			for i, in := range steps {
				var out kernels.StepOutput
				if out, errs[k] = tr.Step(t.Context(), in); errs[k] != nil {
					return
				}
				if k == 0 {
					outs[i] = out
				}
			}
		})
	}
	all.Wait()
	return outs, errs
}

// sameSteps fails unless steps of a job report the bits of one trainer, and leave its state on every device.
func sameSteps(t *testing.T, job []*kernels.Trainer, one *kernels.Trainer, steps ...kernels.StepInput) {
	t.Helper()
	outs, errs := takeSteps(t, job, steps...)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for i, in := range steps {
		if got, want := outs[i], mustStep(t, one, in); !reflect.DeepEqual(got, want) {
			t.Fatalf("step %d in parts of %d:\n%+v %+v\nwant\n%+v %+v", in.Step, in.Part, got, got.Terms, want, want.Terms)
		}
	}
	want := export(t, one)
	for k, tr := range job {
		for d := range tr.Len() / len(job) {
			if got, err := tr.ExportFrom(d); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("device %d of process %d has another state, or: %v", d, k, err)
			}
		}
	}
}

// TestDevicesAreParts: steps on several devices, and as several processes, have the bits of steps on one device that
// takes the batch in the same parts, in every estimator, with subspaces of every kind, with dropout, whatever the
// parts: as many as devices, more, fewer, the last one smaller.
func TestDevicesAreParts(t *testing.T) {
	devices := devicetest.Several(t)
	full := kernels.TrainerConfig{TrainNetwork: true, Estimate: true, Mode: kernels.Full, Probe: kernels.Sphere, Probes: 2}
	backprop := kernels.TrainerConfig{TrainNetwork: true, Estimate: true, Mode: kernels.Backprop}
	explicit := kernels.TrainerConfig{TrainNetwork: true, Estimate: true, Mode: kernels.Explicit}
	frozen := kernels.TrainerConfig{Estimate: true, Mode: kernels.Full, Probe: kernels.Gaussian}
	for _, c := range []struct {
		name                 string
		net                  toy
		basis                *basis.Basis
		cfg                  kernels.TrainerConfig
		own                  bool // the network has noise levels of its own
		processes, ofDevices int
	}{
		{"backprop on two", toy{}, toyBasis(t, 1), backprop, false, 1, 2},
		{"backprop on three", toy{}, toyBasis(t, 1), backprop, false, 1, 3},
		{"full on four", toy{ratios: 2}, toyBasis(t, 3), full, false, 1, 4},
		{"dense per class on four", toy{}, dense(t, vectorsOf(t, []int{0, 1, 2})), explicit, false, 1, 4},
		{"noise levels of its own on four", toy{ratios: 1}, toyBasis(t, 2), backprop, true, 1, 4},
		{"frozen on two", toy{}, toyBasis(t, 2), frozen, false, 1, 2},
		{"dropout on two", toy{dropout: 0.5}, toyBasis(t, 1), kernels.TrainerConfig{TrainNetwork: true}, false, 1, 2},
		{"full in two processes", toy{}, toyBasis(t, 2), full, false, 2, 2},
		{"full in four processes", toy{}, toyBasis(t, 2), full, false, 4, 1},
		{"frozen in two processes", toy{}, toyBasis(t, 2), frozen, false, 2, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			one := trainOn(t, devices[:1], c.net, c.basis, c.cfg)
			job, links := []*kernels.Trainer(nil), processestest.New(c.processes)
			for k := range c.processes {
				tr := trainOn(t, devices[k*c.ofDevices:][:c.ofDevices], c.net, c.basis, c.cfg)
				if c.processes > 1 {
					tr.Join(links.World(k))
				}
				job = append(job, tr)
			}
			var steps []kernels.StepInput
			for k, at := range []struct{ n, part int }{{7, 2}, {11, 2}, {3, 2}, {4, 0}, {7, 2}} {
				if at.part == 0 && c.net.dropout > 0 { // the whole batch has a random state of its own
					continue
				}
				in := stepOf(int64(k+1), at.n, c.basis.J(), at.part)
				if c.own {
					in.NetworkG = slices.Clone(in.G)
					slices.Reverse(in.NetworkG)
				}
				steps = append(steps, in)
			}
			sameSteps(t, job, one, steps...)
		})
	}
}

// TestDevicesSkipTogether: a gradient that is not a number on one device changes no state on any.
func TestDevicesSkipTogether(t *testing.T) {
	devices := devicetest.Several(t)
	tr := trainOn(t, devices, toy{}, nil, kernels.TrainerConfig{TrainNetwork: true})
	in, before := stepOf(1, 8, 1, 2), export(t, tr)
	in.Images[5*toyPixels] = float32(math.NaN()) // of device 2's part
	if out := mustStep(t, tr, in); !out.Skipped {
		t.Fatalf("%+v", out)
	}
	for k := range devices {
		if after, err := tr.ExportFrom(k); err != nil || !reflect.DeepEqual(after, before) {
			t.Errorf("device %d has moved, or: %v", k, err)
		}
	}
	in.Images[5*toyPixels] = 0
	if out, n := mustStep(t, tr, in), export(t, tr).Count; out.Skipped || n != 1 {
		t.Errorf("the next step: %+v, %d counted", out, n)
	}
}

// TestLossOfOneDevice: where one device's state is lost all are, until they are restored.
func TestLossOfOneDevice(t *testing.T) {
	devices := devicetest.Several(t)[:2]
	cfg := kernels.TrainerConfig{TrainNetwork: true}
	tr, in := trainOn(t, devices, toy{}, nil, cfg), stepOf(1, 4, 1, 2)
	state := export(t, tr)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := tr.Step(ended, in); !errors.Is(err, context.Canceled) {
		t.Errorf("a step that was ended before it began: %v", err)
	}
	for name, part := range map[string]int{"parts": 2, "whole": 0} {
		in.Part = part
		if err := tr.Restore(state); err != nil {
			t.Fatal(err)
		}
		tr.LoseState(1, true)
		if _, err := tr.Step(t.Context(), in); err == nil {
			t.Errorf("%s: the step is taken with a state that is gone", name)
		}
		_, step := tr.Step(t.Context(), in)
		_, average := tr.Average()
		_, publish := tr.Publish(t.Context())
		for what, err := range map[string]error{"step": step, "average": average, "publish": publish} {
			if !errors.Is(err, kernels.ErrStateLost) {
				t.Errorf("%s, %s: %v", name, what, err)
			}
		}
	}
	if err := tr.Restore(state); err != nil {
		t.Fatal(err)
	}
	in.Part = 2
	sameSteps(t, []*kernels.Trainer{tr}, trainOn(t, devices[:1], toy{}, nil, cfg), in)
}

// TestTrainersFreeTheirMemory on every device.
func TestTrainersFreeTheirMemory(t *testing.T) {
	devices := devicetest.Several(t)
	held := func() (bytes []int64) {
		for _, d := range devices {
			bytes = append(bytes, d.Stats().BufferBytes)
		}
		return bytes
	}
	before, b := held(), dense(t, map[int][][]float64{basis.Shared: vectorsOf(t, []int{0, 1, 2})[0]})
	t.Run("train", func(t *testing.T) {
		tr := trainOn(t, devices, toy{}, b, kernels.TrainerConfig{TrainNetwork: true, Estimate: true})
		mustStep(t, tr, stepOf(1, 7, 2, 2))
		for k, now := range held() {
			if now <= before[k] {
				t.Errorf("device %d holds nothing", k)
			}
		}
	})
	if after := held(); !slices.Equal(after, before) {
		t.Errorf("the devices hold %v bytes, before %v", after, before)
	}
}

// pair starts two processes of a device each, and returns the world of the first and a step.
func pair(t *testing.T) (*processestest.Job, *processes.World, []*kernels.Trainer, kernels.StepInput) {
	t.Helper()
	devices, job := devicetest.Several(t), processestest.New(2)
	worlds := []*processes.World{job.World(0), job.World(1)}
	var of []*kernels.Trainer
	for k, w := range worlds {
		of = append(of, trainOn(t, devices[k:k+1], toy{}, nil, kernels.TrainerConfig{TrainNetwork: true}))
		of[k].Join(w)
	}
	return job, worlds[0], of, stepOf(1, 4, 1, 2)
}

// TestProcessesFailTogether: where one process cannot take a step none does, and each says why.
func TestProcessesFailTogether(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(tr *kernels.Trainer, in *kernels.StepInput) // of process 1
		want  [2]string
	}{
		"another batch": {
			func(_ *kernels.Trainer, in *kernels.StepInput) {
				in.Images = slices.Clone(in.Images)
				in.Images[3] = 0.25
			},
			[2]string{"process 1 of 2 is about to do another step", "process 1 of 2 is about to do another step"},
		},
		"another state": {
			func(tr *kernels.Trainer, _ *kernels.StepInput) { tr.LoseState(0, true) },
			[2]string{"", "buffer"}, // found where the states move
		},
		"no batch": {
			func(_ *kernels.Trainer, in *kernels.StepInput) { in.G = in.G[1:] },
			[2]string{"process 1 of 2 has failed", "g must hold 4"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, of, in := pair(t)
			other := in
			c.spoil(of[1], &other)
			errs := make([]error, 2)
			var all sync.WaitGroup
			for k, in := range []kernels.StepInput{in, other} {
				all.Go(func() { _, errs[k] = of[k].Step(t.Context(), in) })
			}
			all.Wait()
			for k, err := range errs {
				if err == nil != (c.want[k] == "") || err != nil && !strings.Contains(err.Error(), c.want[k]) {
					t.Errorf("process %d: %v, want %q", k, err, c.want[k])
				}
			}
			if name != "another state" {
				return
			}
			_, errs = takeSteps(t, of, in) // of states that are not the same any more
			for k, err := range errs {
				if err == nil || !strings.HasPrefix(err.Error(), "process 1 of 2") {
					t.Errorf("the next step of process %d: %v", k, err)
				}
			}
		})
	}
}

// TestDeathOfAProcess leaves the state of the other as it was, to be stored.
func TestDeathOfAProcess(t *testing.T) {
	job, world, of, in := pair(t)
	if _, errs := takeSteps(t, of, in); errors.Join(errs...) != nil {
		t.Fatal(errs)
	}
	before, told := export(t, of[0]), make(chan error)
	go func() {
		in.Step++
		_, err := of[0].Step(t.Context(), in)
		told <- err
	}()
	job.Kill()
	if err := <-told; err == nil || !strings.Contains(err.Error(), "has lost the others") || !world.Broken() {
		t.Errorf("error %v", err)
	}
	if !reflect.DeepEqual(export(t, of[0]), before) {
		t.Error("the state has moved")
	}
}
