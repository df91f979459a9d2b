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

	size    int       // B, with padding
	latents []float32 // [B, H, W, C], overwritten by the initial states if there is a Start
}

// batch draws the rows of a bucket.
func (s *Sampler) batch(bucket Bucket, source Source) (*Batch, error) {
	size := s.Network.Model.Pixels()
	b := &Batch{
		Rows: make([]Row, bucket.N), Plans: make([]*solver.Plan, bucket.N), size: bucket.Size,
		latents: make([]float32, bucket.Size*size),
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
	x := slices.Clone(b.latents[:len(b.Rows)*size])
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

// rows returns what read writes, without the padding.
func (b *Batch) rows(read func([]float32) error) ([]float32, error) {
	all := make([]float32, len(b.latents))
	err := read(all)
	return all[:len(b.Rows)*len(all)/b.size], err
}

// follow samples one batch. All plans have the same structure; padding repeats the last row.
func (s *Sampler) follow(ctx context.Context, b *Batch, w Watch) error {
	net, leave, err := s.Device.Place(s.Network)
	if err != nil {
		return err
	}
	defer leave()
	size := net.Model.Pixels()
	labels, padded := make([]int32, b.size), make([]*solver.Plan, b.size)
	for i := range padded {
		last := min(i, len(b.Rows)-1)
		padded[i], labels[i] = b.Plans[last], b.Rows[last].Label
	}
	if s.Start != nil {
		for i, r := range b.Rows {
			if err := s.Start.Draw(r.Label, b.Plans[i], b.latents[i*size:(i+1)*size]); err != nil {
				return err
			}
		}
	}
	first := b.Plans[0]
	t, err := net.Model.NewTrajectory(net.Weights, b.latents, labels, historyOf(first))
	if err != nil {
		return err
	}
	defer t.Close()
	if first.Data {
		t.KeepDenoised()
	}
	if first.States {
		t.KeepStates()
	}
	combine, err := combinationOf(t, padded)
	if err != nil {
		return err
	}
	if s.Start == nil {
		init := concat(padded, func(p *solver.Plan) []float64 { return p.Init })
		if err := s.Device.Take(ctx, func() error { return t.Combine(ctx, init, nil) }); err != nil {
			return err
		}
	}
	if w.Stage != nil {
		if err := w.Stage(b, -1, t); err != nil {
			return err
		}
	}
	for k := range first.Stages {
		st := &stage{
			t: t, n: len(b.Rows), size: size, labels: labels, move: combine(k),
			g: concat(padded, func(p *solver.Plan) []float64 { return p.Stages[k].G }),
		}
		st.noise, st.scale = churn(b.Rows, padded, k, size)
		var known []float32
		if w.Known != nil {
			known = w.Known(b, k)
		}
		if known != nil {
			err = st.output(ctx, known, known, nil)
		} else if slices.ContainsFunc(b.Plans, func(p *solver.Plan) bool { return s.Guide.acts(p.Stages[k]) }) {
			err = s.evaluateGuided(ctx, net, b.Plans, k, st)
		} else {
			err = s.Device.Evaluate(ctx, net, Part{
				Rows: st.n, Size: b.size, Alone: st.alone, Input: st.input, Output: st.output,
			})
		}
		if err != nil {
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

// churn draws the noise that stage k adds, from the seed of each sample and the number of the stage. noise [B, H, W, C]
// and scale [B·J] are 0 for padding and for rows without noise, and nil if no row has any.
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
	t       *kernels.Trajectory
	n, size int       // rows that are no padding, and numbers in each
	labels  []int32   // [B]; the fields below are for B rows, too
	noise   []float32 // nil: none, or added already
	scale   []float64
	g       []float64
	move    func(context.Context) error // combines the evaluations
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
	batch := len(s.labels)
	x = make([]float32, batch*s.size)
	return x[:s.n*s.size], s.g[:len(s.g)/batch*s.n], s.labels[:s.n], s.t.X(x)
}

func (s *stage) output(ctx context.Context, denoised, flow, _ []float32) error {
	b := Bucket{N: s.n, Size: len(s.labels)}
	if err := s.t.Record(Pad(denoised, s.size, b), Pad(flow, s.size, b)); err != nil {
		return err
	}
	return s.move(ctx)
}
