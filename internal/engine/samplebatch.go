package engine

import (
	"context"

	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/kernels/solver"
)

// row is one sample on its way.
type row struct {
	index int64
	seed  uint64
	label int32
}

// Batches are padded to one of two sizes, so that two compiled programs serve every request.
const (
	smallBucket = 8
	largeBucket = 64
)

// bucket gives the size of the next device batch when n samples remain. Small remainders go in several small batches:
// on a CPU a padded row costs as much as a true one.
func (e *Engine) bucket(n int) int {
	if n > largeBucket/2 {
		return largeBucket
	}
	return smallBucket
}

// pad gives rows from … from+n−1 of v, per numbers each, with the last one repeated until there are bucket of them.
func pad[E any](v []E, per, from, n, bucket int) []E {
	if n == bucket {
		return v[from*per : (from+n)*per]
	}
	out := append(make([]E, 0, bucket*per), v[from*per:(from+n)*per]...)
	last := out[(n-1)*per:]
	for len(out) < bucket*per {
		out = append(out, last...)
	}
	return out
}

// runBatch takes rows from their latents, padded to a bucket, to samples, and hands previews and samples to out.
func (s *sampling) runBatch(ctx context.Context, rows []row, latents []float32, out *sampleWriter) error {
	size := s.h * s.w * s.c
	bucket := len(latents) / size
	labels := make([]int32, bucket)
	plans := make([]*solver.Plan, bucket)
	for i := range plans {
		r := rows[min(i, len(rows)-1)] // padding follows the last row's plan
		p, err := s.planFor(r.label)
		if err != nil {
			return err
		}
		plans[i], labels[i] = p, r.label
	}
	first := plans[0]
	j := s.sched.J()
	t, err := s.on.NewTrajectory(ctx, s.model.weights, latents, labels, first.History)
	if err != nil {
		return err
	}
	defer t.Close()
	if first.Data {
		t.KeepDenoised()
	}
	alpha, g := make([]float64, bucket*j), make([]float64, bucket*j)
	for i, p := range plans {
		copy(alpha[i*j:], p.Init)
	}
	if err := s.e.turns.take(ctx, func() error { return t.Combine(ctx, alpha, nil) }); err != nil {
		return err
	}
	images := make([]float32, bucket*size)
	for k := range first.Stages {
		beta, h := stageNumbers(plans, k, g, alpha)
		noise, scale := churn(rows, plans, k, size)
		err := s.e.turns.take(ctx, func() error {
			if noise != nil {
				if err := t.AddNoise(ctx, noise, scale); err != nil {
					return err
				}
			}
			if err := t.Evaluate(ctx, g); err != nil {
				return err
			}
			return t.Combine(ctx, alpha, beta[:bucket*j*h])
		})
		if err != nil {
			return err
		}
		step := first.Stages[k].Step
		if step < 0 {
			continue
		}
		if s.req.Every > 0 && step%s.req.Every == 0 {
			if err := t.Denoised(images); err != nil {
				return err
			}
			if err := out.preview(rows, images, step, k+1); err != nil {
				return err
			}
		}
		if err := out.progress(step+1, s.steps); err != nil {
			return err
		}
	}
	if err := t.X(images); err != nil {
		return err
	}
	return out.final(rows, images, first.NFE)
}

// stageNumbers gathers stage k of each row's plan: g and alpha [B·J] are filled, beta [B·J·h] is new.
func stageNumbers(plans []*solver.Plan, k int, g, alpha []float64) (beta []float64, h int) {
	for _, b := range plans[0].Stages[k].Beta {
		h = max(h, len(b))
	}
	j := len(plans[0].Init)
	beta = make([]float64, len(plans)*j*h)
	for i, p := range plans {
		stage := p.Stages[k]
		copy(g[i*j:], stage.G)
		copy(alpha[i*j:], stage.Alpha)
		for q, b := range stage.Beta {
			copy(beta[(i*j+q)*h:], b)
		}
	}
	return beta, h
}

// churn draws the noise that stage k adds: of each sample from its own seed, and of each stage its own. Both results are nil
// where nothing is added; noise [B, H, W, C] and scale [B·J] are 0 for rows without, and for padding.
func churn(rows []row, plans []*solver.Plan, k, size int) (noise []float32, scale []float64) {
	for i, r := range rows {
		own := plans[i].Stages[k].Noise
		if own == nil {
			continue
		}
		if noise == nil {
			noise, scale = make([]float32, len(plans)*size), make([]float64, len(plans)*len(own))
		}
		latent.Normal(r.seed, latent.StreamChurn+uint32(k), noise[i*size:(i+1)*size])
		copy(scale[i*len(own):], own)
	}
	return noise, scale
}
