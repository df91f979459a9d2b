package engine

import (
	"context"

	"github.com/anisoflight/anisoflight/kernels"
)

// leg is one stage of a trajectory: noise is added where there is any, the network evaluated, the state moved.
type leg struct {
	t           *kernels.Trajectory
	n, size     int       // rows that are no padding, and numbers in each
	labels      []int32   // [B], as everything that follows
	noise       []float32 // nil: none, or added already
	scale       []float64
	g           []float64
	alpha, beta []float64
}

func (l *leg) rows() int { return l.n }

func (l *leg) addNoise(ctx context.Context) error {
	if l.noise == nil {
		return nil
	}
	noise := l.noise
	l.noise = nil
	return l.t.AddNoise(ctx, noise, l.scale)
}

func (l *leg) alone(ctx context.Context) error {
	if err := l.addNoise(ctx); err != nil {
		return err
	}
	if err := l.t.Evaluate(ctx, l.g); err != nil {
		return err
	}
	return l.t.Combine(ctx, l.alpha, l.beta)
}

func (l *leg) give(ctx context.Context) (x []float32, g []float64, labels []int32, err error) {
	if err := l.addNoise(ctx); err != nil {
		return nil, nil, nil, err
	}
	batch := len(l.labels)
	x = make([]float32, batch*l.size)
	return x[:l.n*l.size], l.g[:len(l.g)/batch*l.n], l.labels[:l.n], l.t.X(x)
}

func (l *leg) use(ctx context.Context, denoised, flow, _ []float32) error {
	batch := len(l.labels)
	if err := l.t.Record(pad(denoised, l.size, 0, l.n, batch), pad(flow, l.size, 0, l.n, batch)); err != nil {
		return err
	}
	return l.t.Combine(ctx, l.alpha, l.beta)
}
