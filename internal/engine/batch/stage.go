package batch

import (
	"context"

	"github.com/anisoflight/anisoflight/kernels"
)

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

func (s *stage) rows() int { return s.n }

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
