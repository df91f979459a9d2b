package kernels

import (
	"context"
	"fmt"

	"github.com/gomlx/gomlx/pkg/core/dtypes"
	"github.com/gomlx/gomlx/pkg/core/graph"
	"github.com/gomlx/gomlx/pkg/core/shapes"

	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/latent"
)

// stepInParts is Step on n images, of which the device sees StepInput.Part at a time: what [Replicas] do, of one
// device.
func (t *Trainer) stepInParts(ctx context.Context, in StepInput, n int) (StepOutput, error) {
	if in.Part == 0 || in.Part > n {
		in.Part = n
	}
	alone := Replicas{Trainer: t, trainers: []*Trainer{t}}
	return alone.inParts(ctx, in, n)
}

// share is what one device has of a step in parts under way.
type share struct {
	size  int
	noise [][]*device.Buffer // of all parts
	sum   *device.Buffer     // of the parameters' gradients; nil where the network is frozen
}

// newShare begins a step on n images in parts. Noise and probes are those that the whole batch would have drawn.
func (t *Trainer) newShare(ctx context.Context, in StepInput, n, size int) (*share, error) {
	s := &share{size: size}
	var err error
	if s.noise, err = t.noise(ctx, in, n, size); err == nil && t.cfg.TrainNetwork {
		s.sum, err = t.model.zeros(ctx)
	}
	return s, err
}

// take runs what has to be run on part k of a batch, adds the estimator's terms to terms and the gradient to the
// share's.
func (t *Trainer) take(ctx context.Context, s *share, terms *Terms, in StepInput, k int) error {
	m := t.model
	n := len(in.Images) / m.Pixels()
	part := in.slice(m, k*s.size, min((k+1)*s.size, n))
	images, err := device.UploadAs(m.dev, m.dtype, padded(part.Images, m.Pixels(), s.size), m.imageDims(s.size)...)
	if err != nil {
		return err
	}
	defer images.Release()
	jobs := t.cfg.jobs(part.G, part.NetworkG)
	for i, job := range jobs {
		job.index, job.size, job.images = k, s.size, images
		var of *Terms
		if of, s.sum, err = t.part(ctx, job, part, s.noise[k], s.sum); err != nil {
			return err
		}
		if i == len(jobs)-1 { // the estimator's
			terms.extend(of)
		}
	}
	return nil
}

func (s *share) release() {
	if s == nil {
		return
	}
	for _, part := range s.noise {
		releaseAll(part)
	}
	s.sum.Release()
}

// slice returns samples from … to−1.
func (in StepInput) slice(m *Model, from, to int) StepInput {
	j := m.J()
	in.Images = in.Images[from*m.Pixels() : to*m.Pixels()]
	in.G, in.Omega = in.G[from*j:to*j], in.Omega[from*j:to*j]
	if in.Labels != nil {
		in.Labels = in.Labels[from:to]
	}
	if in.NetworkG != nil {
		in.NetworkG = in.NetworkG[from*j : to*j]
	}
	return in
}

// noise draws ε and the probes of a whole batch and cuts them into parts, the last one filled up with zeros: [part][ε,
// probes…].
func (t *Trainer) noise(ctx context.Context, in StepInput, n, size int) ([][]*device.Buffer, error) {
	m, probes := t.model, 0
	if t.cfg.Mode.probed() {
		probes = t.cfg.Probes
	}
	key := fmt.Sprintf("noise %s %d %d %d|%s", t.cfg.Probe, probes, n, size, m.key)
	p, err := m.dev.Program(ctx, key, func(g *graph.Graph) []*Node {
		return m.noiseGraph(g, t.cfg, probes, n, size)
	})
	if err != nil {
		return nil, err
	}
	s := m.stage()
	defer s.release()
	out, err := t.run(ctx, s, p, s.random(randomState(in.Seed, in.Step)))
	if err != nil {
		return nil, err
	}
	var parts [][]*device.Buffer
	for ; len(out) > 0; out = out[1+probes:] {
		parts = append(parts, out[:1+probes])
	}
	return parts, nil
}

// noiseGraph is the program of noise. Its parameter is the random state.
func (m *Model) noiseGraph(g *graph.Graph, cfg TrainerConfig, probes, n, size int) []*Node {
	draw := generator{graph.Parameter(g, "rng", shapes.Make(dtypes.Uint64, 3))}
	shape := shapes.Make(m.dtype, m.imageDims(n)...)
	all := []*Node{draw.normal(shape)}
	for range probes {
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

// partJob is one program run on one part of a batch.
type partJob struct {
	mode        Mode
	train       bool      // add the gradients of the network's parameters to the sum
	g           []float64 // noise variances of the part
	index, size int       // of the part
	images      *device.Buffer
}

// jobs lists the programs that a part of a batch goes through: one, or two where the network is trained at noise levels
// of its own, and the estimator at the schedule's.
func (c TrainerConfig) jobs(g, networkG []float64) []partJob {
	if networkG != nil && c.TrainNetwork {
		return []partJob{{mode: LossOnly, train: true, g: networkG}, {mode: c.Mode, g: g}}
	}
	return []partJob{{mode: c.Mode, train: c.TrainNetwork, g: g}}
}

// part returns the terms of a part, and the new sum in place of the one it is given.
func (t *Trainer) part(ctx context.Context, job partJob, in StepInput, noise []*device.Buffer,
	sum *device.Buffer,
) (*Terms, *device.Buffer, error) {
	m, n := t.model, len(in.Images)/t.model.Pixels()
	probes := 0
	if job.mode.probed() {
		probes = t.cfg.Probes
	}
	p, err := m.program(ctx, fmt.Sprintf("part %s %v %d %d", job.mode, job.train, probes, job.size),
		func(g *graph.Graph) []*Node { return m.partGraph(g, job, probes) })
	if err != nil {
		return nil, sum, err
	}
	s := m.stage()
	defer s.release()
	args, err := s.batchArgs(padded(in.Labels, 1, job.size), job.size)
	if err != nil {
		return nil, sum, err
	}
	omega := make([]float64, job.size*m.J())
	copy(omega, in.Omega) // the rest weighs nothing
	run := append(args.with(func() device.Arg { return device.Use(t.state[0]) }),
		device.Use(job.images),
		put(s, padded(job.g, m.J(), job.size), job.size, m.J()),
		put(s, omega, job.size, m.J()))
	for _, x := range noise[:1+probes] {
		run = append(run, device.Use(x))
	}
	if job.train {
		run = append(run, s.random(partState(in.Seed, in.Step, job.index)), device.Donate(sum))
	}
	out, err := t.run(ctx, s, p, run...)
	if err != nil {
		return nil, sum, err
	}
	if job.train {
		sum, out = out[0], out[1:]
	}
	defer releaseAll(out)
	terms, err := readTerms(out[0], job.mode, n, job.size, m.J())
	return terms, sum, err
}

// partGraph is the program of a part. Its parameters are frame's, then images, g, omega, ε, the probes and, if the
// network trains, the random state of its dropout and the sum of the gradients so far; its outputs the new sum if so,
// and the terms.
func (m *Model) partGraph(g *graph.Graph, job partJob, probes int) []*Node {
	f := m.frame(g, job.size)
	e := estimator{mode: job.mode, x0: f.image("images")}
	e.wrapped = f.wrap(f.perSubspace("g"))
	e.omega = f.perSubspace("omega")
	e.eps = f.image("eps")
	for i := range probes {
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

// apply takes one optimiser step on the mean of gradients that sum to sum.
func (t *Trainer) apply(ctx context.Context, in StepInput, n int, sum *device.Buffer) (norm float64, err error) {
	m := t.model
	p, err := m.dev.Program(ctx, fmt.Sprintf("apply %s %d|%s", t.cfg.key(), n, m.key), func(g *graph.Graph) []*Node {
		return m.applyGraph(g, t.cfg, n)
	})
	if err != nil {
		return 0, err
	}
	s := m.stage()
	defer s.release()
	var args []device.Arg
	for _, b := range t.state {
		args = append(args, device.Donate(b))
	}
	args = append(args, device.Use(sum), put(s, rates(t.cfg, t.count, in.LR, in.EMABeta, in.Clip), 4))
	out, err := t.run(ctx, s, p, args...)
	if err != nil {
		t.lost = !t.state[0].Live()
		return 0, err
	}
	t.state = out[:4:4]
	defer releaseAll(out[4:])
	return t.countStep(out[4])
}

// applyGraph is the program of apply. Its parameters are the state, the sum and the rates.
func (m *Model) applyGraph(g *graph.Graph, cfg TrainerConfig, n int) []*Node {
	f := &frame{model: m, g: g}
	state := f.moments(f.param(device.Donated("params"), m.size))
	return adamOn(cfg, state, graph.MulScalar(f.param("sum", m.size), 1/float64(n)), f.param("rates", 4))
}

// partState is randomState for one part of a step's batch.
func partState(seed uint64, step int64, part int) []uint64 {
	key := latent.Uint64(seed, streamStep, uint64(step)*4+3)
	state := make([]uint64, 3)
	for i := range state {
		state[i] = latent.Uint64(key, streamStep, uint64(part)*3+uint64(i))
	}
	return state
}
