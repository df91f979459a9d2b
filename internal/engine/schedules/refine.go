package schedules

import (
	"context"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/batch"
	"github.com/anisoflight/anisoflight/internal/engine/starts"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/solver/gaussian"
	"github.com/anisoflight/anisoflight/schedule/start"
)

// mostJacobian bounds the numbers of a refinement's Jacobian.
const mostJacobian = 1 << 24

// refine moves nodes to where their solver errs less on a model, and measures the gain.
func (k *Maker) refine(ctx context.Context, req api.Refine, law *gaussian.Spectrum, b *basis.Basis,
	nodes *gaussian.Nodes, from *start.Start, report func(done, total int),
) (*gaussian.Nodes, *api.Refined, error) {
	m, err := k.Catalog.Model(req.Model)
	if err != nil {
		return nil, nil, err
	}
	if err := m.Hold(); err != nil {
		return nil, nil, err
	}
	defer m.Release()
	on, err := m.On(b)
	if err != nil {
		return nil, nil, err
	}
	net := batch.Network{On: on, Weights: m.Weights()}
	if api.Times(api.Times(int64(req.Latents), int64(on.Pixels())), int64(b.J()*nodes.Sampler.Steps)) > mostJacobian {
		return nil, nil, api.Errorf(api.TooLarge,
			"Refining %d noise levels in %d subspaces on %d latents of %d pixels takes too much memory",
			nodes.Sampler.Steps, b.J(), req.Latents, on.Pixels()).WithHint("Ask for fewer latents.")
	}
	searched := k.Batcher.Ensemble(net, m.Shape.Labels, req.Seed, req.Latents)
	held := k.Batcher.Ensemble(net, m.Shape.Labels, req.Seed+uint64(req.Latents), req.Latents)
	if from != nil {
		matched := starts.Of(from, b)
		searched.Start, held.Start = matched, matched
	}
	out, err := gaussian.Refine(ctx, nodes, searched.Sample,
		gaussian.RefineSettings{Iterations: req.Iterations, Progress: report})
	if err != nil {
		return nil, nil, err
	}
	told := &api.Refined{Model: m.Name, Latents: req.Latents, Before: out.Before, After: out.After}
	if told.HeldBefore, err = gaussian.SolutionError(ctx, nodes.Sampler, nodes.Schedule, held.Sample); err != nil {
		return nil, nil, err
	}
	if told.HeldAfter, err = gaussian.SolutionError(ctx, nodes.Sampler, out.Schedule, held.Sample); err != nil {
		return nil, nil, err
	}
	plan, err := solver.New(nodes.Sampler, out.Schedule, 0)
	if err != nil {
		return nil, nil, err
	}
	bench, err := law.Bench(b, plan)
	if err != nil {
		return nil, nil, err
	}
	return &gaussian.Nodes{Sigma: out.Sigma, Schedule: out.Schedule, Sampler: nodes.Sampler, Report: bench}, told, nil
}
