package sampler

import (
	"context"
	"slices"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// Batch is a number of rows that are sampled together.
type Batch struct {
	Rows    []Row
	Plans   []*solver.Plan
	Samples []float32 // [n, H, W, C]; nil until they are computed

	size    int       // number of rows with padding
	latents []float32 // [n, H, W, C], overwritten by the initial states if there is a Start
}

// batch draws the rows of a bucket.
func (s *Sampler) batch(bucket Bucket, source Source) (*Batch, error) {
	size := s.Network.Model.Pixels()
	b := &Batch{
		Rows: make([]Row, bucket.N), Plans: make([]*solver.Plan, bucket.N), size: bucket.Size,
		latents: make([]float32, bucket.N*size),
	}
	for i := range b.Rows {
		var err error
		if b.Rows[i], b.Plans[i], err = source(bucket.From+i, b.latents[i*size:(i+1)*size]); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// States returns the initial states of a batch [n, H, W, C], of plans in one subspace.
func (s *Sampler) States(b *Batch) []float32 {
	size := s.Network.Model.Pixels()
	x := slices.Clone(b.latents)
	if s.Start == nil {
		for i, v := range x {
			x[i] = float32(b.Plans[i/size].Init[0] * float64(v))
		}
	}
	return x
}

// Denoised returns the denoised images of the last evaluation, [n, H, W, C].
func (b *Batch) Denoised(t *kernels.Trajectory) ([]float32, error) { return b.rows(t.Denoised) }

// X returns the states, [n, H, W, C].
func (b *Batch) X(t *kernels.Trajectory) ([]float32, error) { return b.rows(t.X) }

// rows returns what read writes.
func (b *Batch) rows(read func([]float32) error) ([]float32, error) {
	all := make([]float32, len(b.latents))
	err := read(all)
	return all, err
}

// follow samples one batch. All plans have the same structure.
func (s *Sampler) follow(ctx context.Context, b *Batch, w Watch) error {
	net, leave, err := s.Device.Place(s.Network)
	if err != nil {
		return err
	}
	defer leave()
	t, combine, err := s.begin(ctx, net, b)
	if err != nil {
		return err
	}
	defer t.Close()
	if w.Stage != nil {
		if err := w.Stage(b, -1, t); err != nil {
			return err
		}
	}
	for k := range b.Plans[0].Stages {
		var known []float32
		if w.Known != nil {
			known = w.Known(b, k)
		}
		if err := s.evaluate(ctx, net, b, newStage(t, b, k, combine(k)), known); err != nil {
			return err
		}
		w.Evaluated(len(b.Rows))
		if w.Stage != nil {
			if err := w.Stage(b, k, t); err != nil {
				return err
			}
		}
	}
	b.Samples, err = b.X(t)
	return err
}

// begin returns a trajectory at the initial states of a batch, and the combinations of its stages. The caller closes
// it.
func (s *Sampler) begin(ctx context.Context, net Network, b *Batch) (_ *kernels.Trajectory, _ combination, err error) {
	size, labels := net.Model.Pixels(), make([]int32, len(b.Rows))
	for i, r := range b.Rows {
		if labels[i] = r.Label; s.Start == nil {
			continue
		}
		if err := s.Start.Draw(r.Label, b.Plans[i], b.latents[i*size:(i+1)*size]); err != nil {
			return nil, nil, err
		}
	}
	first := b.Plans[0]
	t, err := net.Model.NewTrajectory(net.Weights, b.latents, labels, historyOf(first), b.size)
	if err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			t.Close()
		}
	}()
	if first.Data {
		t.KeepDenoised()
	}
	if first.States {
		t.KeepStates()
	}
	combine, err := combinationOf(t, b.Plans)
	if err == nil && s.Start == nil {
		init := concat(b.Plans, func(p *solver.Plan) []float64 { return p.Init })
		err = s.Device.Take(ctx, func() error { return t.Combine(ctx, init, nil) })
	}
	return t, combine, err
}

// evaluate takes a batch through a stage: with the denoised images if they are known, else guided or not.
func (s *Sampler) evaluate(ctx context.Context, net Network, b *Batch, st *stage, known []float32) error {
	switch {
	case known != nil:
		return st.output(ctx, known, nil, nil)
	case slices.ContainsFunc(b.Plans, func(p *solver.Plan) bool { return s.Guide.scale(p.Stages[st.k]) != 1 }):
		return s.evaluateGuided(ctx, net, b.Plans, st)
	}
	return s.Device.Evaluate(ctx, net, Part{
		Rows: len(b.Rows), Size: b.size, Alone: st.alone, Input: st.input, Output: st.output,
	})
}

// churn draws the noise that stage k adds, from the seed of each sample and the number of the stage. noise [n, H, W, C]
// and scale [n·J] are 0 for rows without noise, and nil if no row has any.
func churn(rows []Row, plans []*solver.Plan, k, size int) (noise []float32, scale []float64) {
	for i, r := range rows {
		deviations := plans[i].Stages[k].Noise
		if deviations == nil {
			continue
		}
		if noise == nil {
			noise, scale = make([]float32, len(plans)*size), make([]float64, len(plans)*len(deviations))
		}
		latent.Normal(r.Seed, latent.StreamChurn+uint32(k), noise[i*size:(i+1)*size])
		copy(scale[i*len(deviations):], deviations)
	}
	return noise, scale
}

// stage is one stage of a trajectory: it adds noise if there is any, evaluates the network and moves the state.
type stage struct {
	t      *kernels.Trajectory
	k      int       // its number
	size   int       // numbers of an image
	labels []int32   // of n rows
	noise  []float32 // nil: none, or added already
	scale  []float64
	g      []float64
	move   func(context.Context) error // combines the evaluations
}

func newStage(t *kernels.Trajectory, b *Batch, k int, move func(context.Context) error) *stage {
	st := &stage{
		t: t, k: k, size: len(b.latents) / len(b.Rows), move: move,
		g: concat(b.Plans, func(p *solver.Plan) []float64 { return p.Stages[k].G }),
	}
	for _, r := range b.Rows {
		st.labels = append(st.labels, r.Label)
	}
	st.noise, st.scale = churn(b.Rows, b.Plans, k, st.size)
	return st
}

func (s *stage) addNoise(ctx context.Context) error {
	if s.noise == nil {
		return nil
	}
	noise := s.noise
	s.noise = nil
	return s.t.AddNoise(ctx, noise, s.scale)
}

func (s *stage) alone(ctx context.Context) error {
	if err := s.addNoise(ctx); err != nil {
		return err
	}
	if err := s.t.Evaluate(ctx, s.g); err != nil {
		return err
	}
	return s.move(ctx)
}

func (s *stage) input(ctx context.Context) (x []float32, g []float64, labels []int32, err error) {
	if err := s.addNoise(ctx); err != nil {
		return nil, nil, nil, err
	}
	x = make([]float32, len(s.labels)*s.size)
	return x, s.g, s.labels, s.t.X(x)
}

// output takes the flow as nil if it is not known, which only a plan of denoised images allows.
func (s *stage) output(ctx context.Context, denoised, flow, _ []float32) error {
	if err := s.t.Record(denoised, flow); err != nil {
		return err
	}
	return s.move(ctx)
}
