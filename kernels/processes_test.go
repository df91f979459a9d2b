package kernels_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/anisoflight/anisoflight/internal/devicetest"
	"github.com/anisoflight/anisoflight/internal/processestest"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/processes"
)

// takeSteps takes steps as every process of a job, and returns what process 0 reports and what the last step of each
// returns.
func takeSteps(t *testing.T, of []*kernels.Replicas, steps ...kernels.StepInput) ([]kernels.StepOutput, []error) {
	t.Helper()
	outs, errs := make([]kernels.StepOutput, len(steps)), make([]error, len(of))
	var all sync.WaitGroup
	for k, r := range of {
		all.Go(func() {
			for i, in := range steps {
				var out kernels.StepOutput
				if out, errs[k] = r.Step(t.Context(), in); errs[k] != nil {
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

// TestProcessesAreDevices: N processes of M devices have the bits of one device that takes the batch in the same parts,
// states, losses, terms and counted FLOPs alike.
func TestProcessesAreDevices(t *testing.T) {
	devices := devicetest.Several(t)
	for _, c := range []struct {
		name string
		net  toy
		j    int
		cfg  kernels.TrainerConfig
	}{
		{"full", toy{}, 2, kernels.TrainerConfig{TrainNetwork: true, Estimate: true, Mode: kernels.Full, Probes: 2}},
		{"frozen", toy{}, 2, kernels.TrainerConfig{Estimate: true, Mode: kernels.Full}},
	} {
		for _, size := range []int{2, 4} {
			t.Run(fmt.Sprintf("%s, %d processes", c.name, size), func(t *testing.T) {
				values, each := c.net.values(4), len(devices)/size
				b := toyBasis(t, c.j)
				job := processestest.New(size)
				one := newReplicas(t, devices[:1], c.net, b, c.cfg, values)
				var of []*kernels.Replicas
				for k := range size {
					r := newReplicas(t, devices[k*each:][:each], c.net, b, c.cfg, values)
					r.Join(job.World(k))
					of = append(of, r)
				}
				if of[0].Len() != len(devices) {
					t.Errorf("%d devices", of[0].Len())
				}
				var steps []kernels.StepInput
				for k, at := range []struct{ n, part int }{{7, 2}, {11, 2}, {3, 2}, {4, 0}, {7, 2}} {
					x := labelled(uint64(200+k), at.n, c.j)
					steps = append(steps, kernels.StepInput{
						Images: narrow(x.X0), Labels: x.Labels, G: x.G, Omega: x.Omega,
						Seed: 42, Step: int64(k + 1), LR: 1e-2, EMABeta: 0.9, Clip: 5, Part: at.part,
					})
				}
				outs, errs := takeSteps(t, of, steps...)
				if err := errors.Join(errs...); err != nil {
					t.Fatal(err)
				}
				for i, in := range steps {
					want, err := one.Step(t.Context(), in)
					if err != nil {
						t.Fatal(err)
					}
					got := outs[i]
					if math.Float64bits(got.GradNorm) != math.Float64bits(want.GradNorm) || !slices.Equal(got.Loss, want.Loss) ||
						!reflect.DeepEqual(got.Terms, want.Terms) || got.FLOPs != want.FLOPs {
						t.Fatalf("step %d\n%+v %+v\nwant\n%+v %+v", in.Step, got, got.Terms, want, want.Terms)
					}
				}
				for k, r := range of {
					for d := range each {
						sameBits(t, fmt.Sprintf("device %d of process %d", d, k), r.At(d), one)
					}
				}
			})
		}
	}
}

// pair starts two processes of a device each, and returns their worlds and a step.
func pair(t *testing.T) (*processestest.Job, []*processes.World, []*kernels.Replicas, kernels.StepInput) {
	t.Helper()
	devices, net, job := devicetest.Several(t), toy{}, processestest.New(2)
	var worlds []*processes.World
	var of []*kernels.Replicas
	for k := range 2 {
		r := newReplicas(t, devices[k:k+1], net, nil, kernels.TrainerConfig{TrainNetwork: true}, net.values(4))
		worlds = append(worlds, job.World(k))
		r.Join(worlds[k])
		of = append(of, r)
	}
	b := toyBatch(7, 4, 1)
	return job, worlds, of, kernels.StepInput{
		Images: narrow(b.X0), G: b.G, Omega: b.Omega, Seed: 42, Step: 1, LR: 1e-2, EMABeta: 0.9, Part: 2,
	}
}

// TestProcessesFailTogether: where one process cannot take a step none does, and each says why.
func TestProcessesFailTogether(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(r *kernels.Replicas, in *kernels.StepInput) // of process 1
		want  [2]string
	}{
		"another batch": {
			func(_ *kernels.Replicas, in *kernels.StepInput) {
				in.Images = slices.Clone(in.Images)
				in.Images[3] = 0.25
			},
			[2]string{"process 1 of 2 is about to do another step", "process 1 of 2 is about to do another step"},
		},
		"another state": {
			func(r *kernels.Replicas, _ *kernels.StepInput) { r.LoseShare(0) },
			[2]string{"", "buffer"}, // found where the states move
		},
		"no batch": {
			func(_ *kernels.Replicas, in *kernels.StepInput) { in.G = in.G[1:] },
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
				var peer *processes.PeerError
				if !errors.As(err, &peer) || peer.Rank != 1 {
					t.Errorf("the next step of process %d: %v", k, err)
				}
			}
		})
	}
}

// TestDeathOfAProcess leaves the state of the other as it was, to be stored.
func TestDeathOfAProcess(t *testing.T) {
	job, worlds, of, in := pair(t)
	if _, errs := takeSteps(t, of, in); errors.Join(errs...) != nil {
		t.Fatal(errs)
	}
	before, err := of[0].Export(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan error)
	go func() {
		in.Step++
		_, err := of[0].Step(t.Context(), in)
		told <- err
	}()
	job.Kill()
	var lost *processes.LostError
	if err := <-told; !errors.As(err, &lost) || !worlds[0].Broken() {
		t.Errorf("error %v", err)
	}
	if after, err := of[0].Export(t.Context()); err != nil || !reflect.DeepEqual(after, before) {
		t.Errorf("the state has moved, or: %v", err)
	}
}
