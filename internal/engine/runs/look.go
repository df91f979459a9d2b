package runs

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/base/safely"
	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/frechet"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/train"
	"github.com/anisoflight/anisoflight/train/data"
)

// look measures the run's state if that is due, and the training keeps the best state. Requests share the device
// meanwhile. The training is open.
func (r *Run) look(ctx context.Context, end bool) error {
	var c *train.Candidate
	err := r.runs.cfg.Batcher.Take(ctx, func() error { // before the owner is asked, as for a step
		return r.do(ctx, func() error {
			if r.training == nil {
				return nil
			}
			return safely.Do(func() (err error) { c, err = r.training.Candidate(ctx, end); return err })
		})
	})
	if err != nil || c == nil {
		return err
	}
	defer c.Close()
	var energy, samples, onStart []float64
	err = r.runs.cfg.Batcher.Run(ctx, nil, func(report func(done, total int)) (err error) {
		energy, err = c.Energies(ctx, report)
		return err
	})
	if err == nil && r.cfg.ForNFE > 0 {
		err = r.measureImages(ctx, c.Data)
	}
	if err == nil && r.references != nil {
		samples, err = r.distances(ctx, c, c.Schedule)
		if err == nil && c.Start != nil {
			onStart, err = r.distances(ctx, c, c.Start)
		}
	}
	if err != nil {
		return err
	}
	return r.do(ctx, func() error {
		if r.training == nil { // it has been stored, and closed
			return nil
		}
		if err := r.training.Keep(c, energy, samples, onStart); err != nil {
			return err
		}
		o := r.training.Outcome()
		r.looks, r.status.Outcome = o.Looks, r.describeOutcome(o)
		return nil
	})
}

// distances measures samples of a candidate, taken with Heun's method on a path: the geometric mean of the Fréchet
// distances of frequencies and of edges to the run's images, with each part of the samples left out in turn.
func (r *Run) distances(ctx context.Context, c *train.Candidate, path *schedule.Schedule) ([]float64, error) {
	set, err := solver.Settings{Solver: "heun", SecondPoint: "endpoint", NFE: r.cfg.ForNFE}.Resolve()
	if err != nil {
		return nil, err
	}
	planFor := solver.Plans(set, path)
	order := latent.Perm(c.Seed, latent.StreamLatent, c.Data.Len())
	source := func(i int, x []float32) (sampler.Row, *solver.Plan, error) {
		row := sampler.Row{Seed: c.Seed + uint64(i), Label: c.Data.Label(order[i%len(order)])}
		sampler.DrawLatent(row.Seed, x)
		plan, err := planFor(row.Label)
		return row, plan, err
	}
	var x []float32
	heun := sampler.Sampler{
		Device: r.runs.cfg.Batcher, Network: sampler.Network{Model: c.Model, Weights: c.Weights},
	}
	err = heun.Follow(ctx, c.Draws, source, sampler.Watch{
		Done: func(b *sampler.Batch) error { x = append(x, b.Samples...); return nil },
	})
	if err != nil {
		return nil, err
	}
	m := sampler.Moments{Parts: frechet.PartsLike(r.references, train.LookParts)}
	m.Add(0, x, nil)
	return frechet.Parts(m.Parts).Scores(r.references), nil
}

// measureImages measures the features of the run's images once. There are no references if all images are the same.
func (r *Run) measureImages(ctx context.Context, d *data.Dataset) error {
	r.measuring.Lock()
	defer r.measuring.Unlock()
	if r.references != nil {
		return nil
	}
	all := frechet.NewParts(1, frechet.FrequenciesAndEdges(
		d.Height(), d.Width(), d.Channels(), d.Normalization() != nil)...)
	err := d.Each(ctx, nil, nil, func(_ []int32, images []float64) error {
		for _, s := range all[0] {
			s.Add(images)
		}
		return nil
	})
	if err == nil {
		r.references, _ = all.References() // without any, states are judged by their energy
	}
	return err
}

// describeOutcome describes how much better a run's best state is than its start.
func (r *Run) describeOutcome(o *train.Outcome) *api.Outcome {
	out := &api.Outcome{Step: o.Best.Step, Kimg: o.Best.Kimg, OnStart: o.Best.OnStart}
	parts := []string{fmt.Sprintf("kept the state of step %d of %d", o.Best.Step, o.Last.Step)}
	if o.Start.Samples != nil {
		out.NFE, out.Samples = r.cfg.ForNFE, ratio(o.Start.Samples, o.Best.Samples)
	}
	if o.Best.Step == 0 {
		out.Summary = fmt.Sprintf("kept the start, since no state up to step %d is better", o.Last.Step)
		return out
	}
	if o.Best.OnStart {
		parts = append(parts, "with the path of the start, along which its samples are better")
	} else if m := o.Moved; m != nil {
		parts = append(parts, fmt.Sprintf("at σ = %.2g the noise variance is %.3g times what it was", m.Sigma,
			math.Exp(m.LogG)))
		if m.RatioAfter != 1 {
			parts = append(parts, fmt.Sprintf("g_i/g_j, lower subspace over higher, goes to %.3g (at σ = %.2g)", m.RatioAfter,
				m.RatioSigma))
		}
	}
	if !o.Best.OnStart {
		out.Energy = ratio(o.Start.Energy, o.Best.Energy)
		parts = append(parts, fmt.Sprintf("energy %.3g ± %.1g times the start's", out.Energy.Value, out.Energy.Stderr))
	}
	if s := out.Samples; s != nil {
		parts = append(parts, fmt.Sprintf("samples of Heun's method at %d evaluations %s the start's: distance %.3g ± %.1g "+
			"times theirs", out.NFE, api.Compare(s.Value, 2*s.Stderr), s.Value, s.Stderr))
	}
	out.Summary = strings.Join(parts, "; ")
	return out
}

// ratio compares a measure of a state with that of the start.
func ratio(start, state []float64) *api.Ratio {
	change, stderr := frechet.Change(start, state)
	return &api.Ratio{Value: math.Exp(change), Stderr: math.Exp(change) * stderr}
}
