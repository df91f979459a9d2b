package engine

import (
	"context"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/sampling"
)

// sampler draws samples of what the engine has.
func (e *Engine) sampler() *sampling.Sampler {
	return &sampling.Sampler{Catalog: e.catalog, Batcher: e.batcher, MaxBytes: e.cfg.MaxBytes}
}

// prepareSample draws samples of seeds.
func (e *Engine) prepareSample(_ context.Context, req api.Sample) (*api.Job, error) {
	return e.sampler().Prepare(req)
}

// exchangeSample samples from the caller's own latents.
func (e *Engine) exchangeSample(_ context.Context, req api.Sample, in api.Schema) (*api.Exchange, error) {
	return e.sampler().Exchange(req, in)
}

// planSampler returns the numbers of a sampler, without a model or a device.
func (e *Engine) planSampler(_ context.Context, req api.PlanSampler) (any, error) {
	return sampling.Plan(e.catalog, req)
}
