package train_test

import (
	"context"

	"github.com/anisoflight/anisoflight/internal/testing/mixturetest"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// The laboratory's schedule: two subspaces with paths of four knots.
const (
	endT, g0, weightC = 25.0, 1e-3, 1.0
	subspaces         = 2
	perPath           = 3
	parameters        = subspaces * perPath
	pixels            = 4
	seed              = 1 // of all draws, one that the bounds were not chosen by
)

// The streams of package latent.
const (
	streamTime  uint32 = 0x63686b74
	streamImage uint32 = 0x63686b78
)

// thetas is the point at which the gradient is taken.
type thetas [subspaces]schedule.Theta

var point = thetas{{1.2, 0.4, 0.1}, {0.6, 0.9, -0.2}}

// laboratory is a mixture of two Gaussians in 2×2 pixels, and a fixed draw of times and images. Noise and probes are
// the device's own.
type laboratory struct {
	model *kernels.Model
	t     []float64
	data  map[bool][]float32 // by whether the flow is optimal for them
}

func newLaboratory(dev *device.Device, samples int) (*laboratory, error) {
	b, err := basis.DCTBands(2, 2, 1)
	if err != nil {
		return nil, err
	}
	mix, err := mixturetest.New(mixturetest.Settings{
		Height: 2, Width: 2, Channels: 1,
		Weights: []float64{0.6, 0.4},
		Means:   [][]float64{{0.8, 0.2, -0.5, 0.6}, {-0.7, 0.4, 0.9, -0.3}},
		Covs: [][]float64{
			{0.30, 0.05, 0.02, 0, 0.05, 0.20, 0, 0.03, 0.02, 0, 0.10, -0.02, 0, 0.03, -0.02, 0.15},
			{0.12, -0.03, 0, 0.01, -0.03, 0.25, 0.04, 0, 0, 0.04, 0.18, 0, 0.01, 0, 0, 0.08},
		},
	}, b)
	if err != nil {
		return nil, err
	}
	l := &laboratory{t: make([]float64, samples), data: map[bool][]float32{}}
	if l.model, err = kernels.NewModelAt(kernels.Float64, dev, mix, b); err != nil {
		return nil, err
	}
	for i := range l.t { // stratified, each its own stratum
		u := latent.Uniform(latent.Uint64(seed, streamTime, uint64(i)), streamTime)
		l.t[i] = endT * (float64(i) + u) / float64(samples)
	}
	l.draw(mix)
	return l, nil
}

// draw makes the images: as the mixture has them, and 1.6 times as large and shifted.
func (l *laboratory) draw(mix *mixturetest.Mixture) {
	var drawn uint64
	next := func() uint64 { drawn++; return latent.Uint64(seed, streamImage, drawn) }
	normal := func(dst []float64) {
		z := make([]float32, len(dst))
		latent.Normal(next(), streamImage, z)
		for i, v := range z {
			dst[i] = float64(v)
		}
	}
	x := make([]float64, len(l.t)*pixels)
	mix.Sample(x, normal, func() float64 { return latent.Uniform(next(), streamImage) })
	for i, v := range x {
		l.data[true] = append(l.data[true], float32(v))
		l.data[false] = append(l.data[false], float32(1.6*v+0.5*float64(1+i%pixels)))
	}
}

// levels are g, ġ and ω of every sample [B*J].
type levels struct{ g, gdot, omega []float64 }

func (l *laboratory) levels(th thetas) (v levels) {
	var paths [subspaces]*schedule.Path
	for j := range paths {
		paths[j] = th[j].Path(endT, g0)
	}
	for _, t := range l.t {
		for _, p := range paths {
			g, gdot := p.Eval(t)
			v.g, v.gdot = append(v.g, g), append(v.gdot, gdot)
			v.omega = append(v.omega, schedule.Omega(g, gdot, weightC))
		}
	}
	return v
}

// step runs a training step with the network frozen; its noise depends on the seed alone.
func (l *laboratory) step(ctx context.Context, cfg kernels.TrainerConfig, v levels, optimal bool) (kernels.StepOutput,
	error,
) {
	t, err := l.model.NewTrainer(cfg, nil)
	if err != nil {
		return kernels.StepOutput{}, err
	}
	defer t.Close()
	return t.Step(ctx, kernels.StepInput{Images: l.data[optimal], G: v.g, Omega: v.omega, Seed: seed, Step: 1})
}

// chained carries the parts of every sample to θ [B][parameters].
func (l *laboratory) chained(parts []kernels.Part) [][]float64 {
	rows := make([][]float64, len(l.t))
	for i := range rows {
		rows[i] = make([]float64, parameters)
	}
	dlogg := make([]float64, perPath+1)
	for j, th := range point {
		path := th.Path(endT, g0)
		for i, t := range l.t {
			at := i*subspaces + j
			var A, B float64
			for _, p := range parts {
				A += p.A[at]
				if p.B != nil {
					B += p.B[at]
				}
			}
			clear(dlogg)
			path.Chain(t, A, B, dlogg)
			th.Pull(endT, g0, dlogg, rows[i][j*perPath:(j+1)*perPath])
		}
	}
	return rows
}

// differences returns the truth [B][parameters] for the stretched data: the derivative of every sample's loss by θ at
// fixed t, x_0 and ε, by a central difference of the fourth order.
func (l *laboratory) differences(ctx context.Context) ([][]float64, error) {
	const h = 1e-3
	rows := make([][]float64, len(l.t))
	for i := range rows {
		rows[i] = make([]float64, parameters)
	}
	for k := range parameters {
		for _, d := range []struct{ at, weight float64 }{{2, -1}, {1, 8}, {-1, -8}, {-2, 1}} {
			var moved thetas
			for j, th := range point {
				moved[j] = append(schedule.Theta(nil), th...)
			}
			moved[k/perPath][k%perPath] += d.at * h
			out, err := l.step(ctx, kernels.TrainerConfig{Mode: kernels.LossOnly, Estimate: true}, l.levels(moved), false)
			if err != nil {
				return nil, err
			}
			for i, loss := range out.Loss {
				rows[i][k] += d.weight * loss / (12 * h)
			}
		}
	}
	return rows, nil
}
