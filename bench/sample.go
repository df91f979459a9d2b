package bench

import (
	"context"
	"slices"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

// sampleNFE is the number of evaluations that sampling makes: EDM's Heun sampler in five steps,
// the last of which needs one evaluation only.
const sampleNFE = 9

// edmHeun is EDM's deterministic sampler (algorithm 1 of arXiv 2206.00364).
var edmHeun = solver.Settings{
	Solver: "heun", SecondPoint: solver.Endpoint, Grid: solver.Grid{Kind: solver.GridEDM}, DenoiseToZero: true,
}

// localSampler draws one batch of images in this process.
type localSampler struct {
	bench   *modelBench
	name    string
	weights *kernels.Weights
	plan    *solver.Plan
	pixels  []float32
}

func newTrajectory(name string, nfe int) func(context.Context, *modelBench) (program, error) {
	return func(_ context.Context, b *modelBench) (program, error) {
		theta, err := schedule.InitialTheta("edm", schedule.DefaultKnots, schedule.DefaultT, schedule.DefaultG0)
		if err != nil {
			return nil, err
		}
		family := schedule.Family{Basis: "none"}
		sch, err := schedule.FromTheta(family, nil, [][]schedule.Theta{{theta}}, schedule.DefaultT, schedule.DefaultG0)
		if err != nil {
			return nil, err
		}
		t := &localSampler{bench: b, name: name, pixels: make([]float32, len(b.inputs.latents))}
		set := edmHeun
		set.NFE = nfe
		if t.plan, err = solver.New(set, sch, 0); err != nil {
			return nil, err
		}
		t.weights, err = b.model.Upload(b.source.Values)
		return t, err
	}
}

func (t *localSampler) run(ctx context.Context) error {
	n := t.bench.inputs.batch
	tr, err := t.bench.model.NewTrajectory(t.weights, t.bench.inputs.latents, t.bench.inputs.labels, t.plan.History, n)
	if err != nil {
		return err
	}
	defer tr.Close()
	if err := tr.Combine(ctx, slices.Repeat(t.plan.Init, n), nil); err != nil {
		return err
	}
	for _, stage := range t.plan.Stages {
		if err := tr.Evaluate(ctx, slices.Repeat(stage.G, n)); err != nil {
			return err
		}
		if err := tr.Combine(ctx, slices.Repeat(stage.Alpha, n), slices.Repeat(stage.Beta[0], n)); err != nil {
			return err
		}
	}
	return tr.X(t.pixels)
}

func (t *localSampler) outputs(ctx context.Context) ([]safetensors.Tensor, error) {
	if err := t.run(ctx); err != nil {
		return nil, err
	}
	images := safetensors.FromFloat32s("output/"+t.name, t.bench.inputs.imageShape(), slices.Clone(t.pixels))
	return []safetensors.Tensor{images}, nil
}

func (t *localSampler) close() error {
	t.weights.Release()
	return nil
}
