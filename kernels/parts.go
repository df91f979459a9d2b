package kernels

import (
	"context"
	"fmt"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/kernels/device"
)

// stepInParts takes a step on a batch in parts: it sums the gradients, then takes one optimiser step on their mean over
// all n images. The last part is padded with images of weight zero, so that one program serves all parts.
func (t *Trainer) stepInParts(ctx context.Context, in StepInput, n int) (out StepOutput, err error) {
	if in.Part == 0 || in.Part > n {
		in.Part = n
	}
	parts := (n + in.Part - 1) / in.Part
	defer func() {
		for _, r := range t.replicas {
			for _, part := range r.noise {
				releaseAll(part)
			}
			r.sum.Release()
			r.noise, r.sum = nil, nil
		}
	}()
	err = t.each(func(_ int, r *replica) (err error) {
		if err = t.drawNoise(ctx, r, in, n); err == nil && t.cfg.TrainNetwork {
			r.sum, err = r.model.zeros(ctx)
		}
		return err
	})
	if err := t.agree(ctx, uint64(parts), err); err != nil {
		return out, err
	}
	out.Terms = newTerms(t.cfg.Mode, n, t.model.J())
	for from := 0; from < parts; from += t.Len() {
		err := t.each(func(k int, r *replica) error {
			if part := from + t.world.Rank()*len(t.replicas) + k; part < parts {
				return t.takePart(ctx, r, out.Terms, in, part)
			}
			return nil
		})
		if err := t.agree(ctx, uint64(from), err); err != nil {
			return out, err
		}
		if t.cfg.TrainNetwork {
			if err := t.sumGradients(ctx, from+t.Len() >= parts); err != nil {
				return out, err
			}
		}
	}
	if out.FLOPs, err = t.gather(ctx, out.Terms); err != nil || !t.cfg.TrainNetwork {
		return out, err
	}
	var report []*device.Buffer
	report, out.GradNorm, err = t.update(ctx, func(ctx context.Context, r *replica) ([]*device.Buffer, error) {
		return t.apply(ctx, r, in, n)
	})
	releaseAll(report)
	return out, err
}

// drawNoise draws ε and the probes of the whole batch and cuts them into parts, the last one padded with zeros:
// [part][ε, probes…].
func (t *Trainer) drawNoise(ctx context.Context, r *replica, in StepInput, n int) error {
	m, probes := r.model, t.cfg.probesOf(t.cfg.Mode)
	key := fmt.Sprintf("noise %s %d %d %d|%s", t.cfg.Probe, probes, n, in.Part, m.key)
	p, err := m.dev.Program(ctx, key, func(g *graph.Graph) []*Node { return m.noiseGraph(g, t.cfg, n, in.Part) })
	if err != nil {
		return err
	}
	s := m.stage()
	defer s.release()
	out, err := r.run(ctx, s, p, s.random(randomState(in.Seed, in.Step)))
	if err != nil {
		return err
	}
	for ; len(out) > 0; out = out[1+probes:] {
		r.noise = append(r.noise, out[:1+probes])
	}
	return nil
}

// noiseGraph is the program of drawNoise. Its parameter is the random state.
func (m *Model) noiseGraph(g *graph.Graph, cfg TrainerConfig, n, size int) []*Node {
	draw := generator{graph.Parameter(g, "rng", shapes.Make(dtypes.Uint64, 3))}
	shape := shapes.Make(m.dtype, m.imageDims(n)...)
	all := []*Node{draw.normal(shape)}
	for range cfg.probesOf(cfg.Mode) {
		all = append(all, draw.probe(cfg.Probe, shape))
	}
	if rest := n % size; rest != 0 {
		fill := graph.Zeros(g, shapes.Make(m.dtype, m.imageDims(size-rest)...))
		for i, x := range all {
			all[i] = graph.Concatenate([]*Node{x, fill}, 0)
		}
	}
	var parts []*Node
	for from := 0; from < n; from += size {
		for _, x := range all {
			parts = append(parts, graph.SliceAxis(x, 0, graph.AxisRange(from, from+size)))
		}
	}
	return parts
}

// job is one program run on a part of a batch.
type job struct {
	mode   Mode
	probes int
	train  bool // add the gradients of the network's parameters to the sum
	// ownLevels is set if the program runs at the network's own noise levels.
	ownLevels bool
}

// jobs lists the programs that run on each part of a batch. If the network has its own noise levels, it is trained by
// the first, and the estimator is the second.
func (c TrainerConfig) jobs(ownLevels bool) []job {
	estimate := job{mode: c.Mode, probes: c.probesOf(c.Mode), train: c.TrainNetwork}
	if !ownLevels || !c.TrainNetwork {
		return []job{estimate}
	}
	estimate.train = false
	return []job{{mode: LossOnly, train: true, ownLevels: true}, estimate}
}

// takePart runs the jobs of part k of a batch, fills in its terms and adds the gradient to the sum.
func (t *Trainer) takePart(ctx context.Context, r *replica, terms *Terms, in StepInput, k int) error {
	m, j, size := r.model, r.model.J(), in.Part
	from := k * size
	to := min(from+size, len(in.Images)/m.Pixels())
	s := m.stage()
	defer s.release()
	var labels []int32
	if in.Labels != nil {
		labels = in.Labels[from:to]
	}
	args, err := s.batchArgs(labels, size)
	if err != nil {
		return err
	}
	omega := make([]float64, size*j)
	copy(omega, in.Omega[from*j:to*j]) // padding has weight zero
	images := put(s, padded(in.Images[from*m.Pixels():to*m.Pixels()], m.Pixels(), size), m.imageDims(size)...)
	weights := put(s, omega, size, j)
	for _, job := range t.cfg.jobs(in.NetworkG != nil) {
		p, err := m.partProgram(ctx, job, size)
		if err != nil {
			return err
		}
		g := in.G
		if job.ownLevels {
			g = in.NetworkG
		}
		levels := put(s, padded(g[from*j:to*j], j, size), size, j)
		run := append(args.withParams(r.state[0], device.Use), images, levels, weights)
		for _, x := range r.noise[k][:1+job.probes] {
			run = append(run, device.Use(x))
		}
		if job.train {
			run = append(run, s.random(partState(in.Seed, in.Step, k)), device.Donate(r.sum))
		}
		out, err := r.run(ctx, s, p, run...)
		if err != nil {
			return err
		}
		if job.train {
			r.sum, out = out[0], out[1:]
		}
		if !job.ownLevels {
			err = terms.read(out[0], from, to)
		}
		releaseAll(out)
		if err != nil {
			return err
		}
	}
	return nil
}

// partProgram returns the program of a job, also for [Model.Estimate].
func (m *Model) partProgram(ctx context.Context, job job, size int) (*device.Program, error) {
	return m.program(ctx, fmt.Sprintf("part %s %v %d %d", job.mode, job.train, job.probes, size),
		func(g *graph.Graph) []*Node { return m.partGraph(g, job, size) })
}

// partGraph draws the program of a job. Its parameters are those of a batch, then ε, the probes and, if the network
// trains, the random state of its dropout and the sum of the gradients so far. Its outputs are the new sum, if the
// network trains, and the terms.
func (m *Model) partGraph(g *graph.Graph, job job, size int) []*Node {
	f := m.frame(g, size, "params")
	e := f.estimator(job.mode)
	e.eps = f.image("eps")
	for i := range job.probes {
		e.probes = append(e.probes, f.image(fmt.Sprintf("probe%d", i)))
	}
	if !job.train {
		terms, _ := e.build()
		return []*Node{graph.Stack(terms, 0)}
	}
	e.rng = graph.Parameter(g, "rng", shapes.Make(dtypes.Uint64, 3))
	sum := f.param(device.Donated("sum"), m.size)
	e.train = f.trained()
	terms, grads := e.build()
	return []*Node{graph.Add(sum, m.flatten(g, grads)), graph.Stack(terms, 0)}
}

// apply takes one optimiser step on the mean of the gradients.
func (t *Trainer) apply(ctx context.Context, r *replica, in StepInput, n int) ([]*device.Buffer, error) {
	m := r.model
	p, err := m.dev.Program(ctx, fmt.Sprintf("apply %+v %d|%s", t.cfg, n, m.key), func(g *graph.Graph) []*Node {
		return m.applyGraph(g, t.cfg, n)
	})
	if err != nil {
		return nil, err
	}
	s := m.stage()
	defer s.release()
	var args []device.Arg
	for _, b := range r.state {
		args = append(args, device.Donate(b))
	}
	return r.run(ctx, s, p, append(args, device.Use(r.sum), put(s, t.rates(in), 4))...)
}

// applyGraph is the program of apply. Its parameters are the state, the sum and the rates.
func (m *Model) applyGraph(g *graph.Graph, cfg TrainerConfig, n int) []*Node {
	f := &frame{model: m, g: g}
	state := f.moments(f.param(device.Donated("params"), m.size))
	return adamOn(cfg, state, graph.MulScalar(f.param("sum", m.size), 1/float64(n)), f.param("rates", 4))
}
