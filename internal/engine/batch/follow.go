package batch

import (
	"context"
	"slices"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// Row is one sample on its way.
type Row struct {
	Index int64
	Seed  uint64
	Label int32
}

// Follow takes a batch of rows from its latents, padded to a bucket, along the rows' plans, of equal structure, to
// samples. start, which it leaves in the place of the latents, may be nil: then the latents are scaled to the noise at
// which the plans start; guide may be nil, too. Padding follows the last row. after, which may be nil, is called when
// a stage is done.
func (b *Batcher) Follow(ctx context.Context, net Network, rows []Row, plans []*solver.Plan, latents []float32,
	start *Start, guide *Guide, after func(stage int, t *kernels.Trajectory) error,
) ([]float32, error) {
	net, leave, err := b.spread.take(net)
	if err != nil {
		return nil, err
	}
	defer leave()
	size := net.Model.Pixels()
	bucket := len(latents) / size
	labels, padded := make([]int32, bucket), make([]*solver.Plan, bucket)
	for i := range padded {
		last := min(i, len(rows)-1)
		padded[i], labels[i] = plans[last], rows[last].Label
	}
	first := plans[0]
	if start != nil {
		for i, r := range rows {
			if err := start.Draw(r.Label, plans[i], latents[i*size:(i+1)*size]); err != nil {
				return nil, err
			}
		}
	}
	t, err := net.Model.NewTrajectory(ctx, net.Weights, latents, labels, historyOf(first))
	if err != nil {
		return nil, err
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
		return nil, err
	}
	if start == nil {
		init := gathered(padded, func(p *solver.Plan) []float64 { return p.Init })
		if err := b.queue.Take(ctx, func() error { return t.Combine(ctx, init, nil) }); err != nil {
			return nil, err
		}
	}
	for k := range first.Stages {
		st := &stage{
			t: t, n: len(rows), size: size, labels: labels, move: combine(k),
			g: gathered(padded, func(p *solver.Plan) []float64 { return p.Stages[k].G }),
		}
		st.noise, st.scale = churn(rows, padded, k, size)
		var err error
		if slices.ContainsFunc(plans, func(p *solver.Plan) bool { return guide.acts(p.Stages[k]) }) {
			err = b.guided(ctx, net, guide, plans, k, st)
		} else {
			err = b.evaluate(ctx, net, part{st.n, st.alone, st.input, st.output})
		}
		if err == nil && after != nil {
			err = after(k, t)
		}
		if err != nil {
			return nil, err
		}
	}
	images := make([]float32, bucket*size)
	return images, t.X(images)
}

// churn draws the noise that stage k adds: of each sample from its own seed, and of each stage its own. Both results
// are nil if nothing is added; noise [B, H, W, C] and scale [B·J] are 0 for rows without, and for padding.
func churn(rows []Row, plans []*solver.Plan, k, size int) (noise []float32, scale []float64) {
	for i, r := range rows {
		own := plans[i].Stages[k].Noise
		if own == nil {
			continue
		}
		if noise == nil {
			noise, scale = make([]float32, len(plans)*size), make([]float64, len(plans)*len(own))
		}
		latent.Normal(r.Seed, latent.StreamChurn+uint32(k), noise[i*size:(i+1)*size])
		copy(scale[i*len(own):], own)
	}
	return noise, scale
}

// stage is one stage of a trajectory: noise is added if there is any, the network evaluated, the state moved.
type stage struct {
	t       *kernels.Trajectory
	n, size int       // rows that are no padding, and numbers in each
	labels  []int32   // [B], as everything that follows
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
	batch := len(s.labels)
	if err := s.t.Record(Pad(denoised, s.size, 0, s.n, batch), Pad(flow, s.size, 0, s.n, batch)); err != nil {
		return err
	}
	return s.move(ctx)
}
