package kernels_test

import (
	"math/rand/v2"
	"testing"

	"github.com/anisoflight/anisoflight/internal/testing/mixturetest"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// laboratory is a mixture of two Gaussians in four dimensions, noise in two subspaces on learned schedules of four
// knots, and a fixed draw of (t, x_0, ε, z).
type laboratory struct {
	m      *kernels.Model
	w      *kernels.Weights
	theta  [2]schedule.Theta
	t      []float64
	x0     []float64
	eps, z []float64
}

const labT, labG0, labC = 25.0, 1e-3, 1.0

// newLaboratory draws x_0 from the mixture and stretches and shifts it. At 1 and 0 the flow is the optimal one for the
// data, and the implicit terms have mean zero.
func newLaboratory(t *testing.T, seed uint64, samples int, stretch, shift float64) *laboratory {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0))
	normal := func(v []float64) {
		for i := range v {
			v[i] = rng.NormFloat64()
		}
	}
	b, err := basis.DCTBands(2, 2, 1)
	if err != nil {
		t.Fatal(err)
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
		t.Fatal(err)
	}
	l := &laboratory{theta: [2]schedule.Theta{{1.2, 0.4, 0.1}, {0.6, 0.9, -0.2}}}
	l.m, l.w = model64(t, mix, b, nil)
	l.x0, l.eps, l.z = make([]float64, 4*samples), make([]float64, 4*samples), make([]float64, 4*samples)
	mix.Sample(l.x0, normal, rng.Float64)
	for i := range l.x0 {
		l.x0[i] = stretch*l.x0[i] + shift*float64(1+i%4)
	}
	normal(l.eps)
	for i := range l.z {
		l.z[i] = float64(2*rng.IntN(2) - 1)
	}
	for i := range samples { // stratified
		l.t = append(l.t, labT*(float64(i)+rng.Float64())/float64(samples))
	}
	return l
}

// levels evaluates the schedules at every sample's t.
func (l *laboratory) levels(theta [2]schedule.Theta) (g, gdot []float64) {
	paths := [2]*schedule.Path{theta[0].Path(labT, labG0), theta[1].Path(labT, labG0)}
	for _, t := range l.t {
		for _, p := range paths {
			a, b := p.Eval(t)
			g, gdot = append(g, a), append(gdot, b)
		}
	}
	return g, gdot
}

func (l *laboratory) terms(t *testing.T, mode kernels.Mode, g, gdot []float64) *kernels.Terms {
	t.Helper()
	return estimate64(t, l.m, l.w, kernels.EstimateInput64{
		Mode: mode, X0: l.x0, Eps: l.eps, Probe: l.z, G: g, Omega: omegas(g, gdot, labC),
	})
}

// perSample chains A and B to θ, one row [6] per sample.
func (l *laboratory) perSample(a, b []float64) [][]float64 {
	out := make([][]float64, len(l.t))
	for i, t := range l.t {
		out[i] = make([]float64, 6)
		for j := range 2 {
			l.theta[j].Chain(labT, labG0, t, a[2*i+j], b[2*i+j], out[i][3*j:3*j+3])
		}
	}
	return out
}

// differences returns the derivative of each sample's loss by θ, x_0, ε and t fixed, by a fourth-order central
// difference: the truth.
func (l *laboratory) differences(t *testing.T) [][]float64 {
	t.Helper()
	const h = 1e-3
	out := make([][]float64, len(l.t))
	for i := range out {
		out[i] = make([]float64, 6)
	}
	for k := range 6 {
		for _, d := range []struct{ at, weight float64 }{{2, -1}, {1, 8}, {-1, -8}, {-2, 1}} {
			moved := [2]schedule.Theta{append(schedule.Theta(nil), l.theta[0]...), append(schedule.Theta(nil), l.theta[1]...)}
			moved[k/3][k%3] += d.at * h
			g, gdot := l.levels(moved)
			loss, _, _ := l.terms(t, kernels.Backprop, g, gdot).Assemble(g, gdot, labC)
			for i, v := range loss {
				out[i][k] += d.weight * v / (12 * h)
			}
		}
	}
	return out
}

// exactTrace replaces one probe by the average over √d e_1 … √d e_d.
func (l *laboratory) exactTrace(t *testing.T, g, gdot []float64) *kernels.Terms {
	t.Helper()
	keep := l.z
	defer func() { l.z = keep }()
	var out *kernels.Terms
	for axis := range 4 {
		l.z = make([]float64, len(keep))
		for i := range l.t {
			l.z[4*i+axis] = 2
		}
		terms := l.terms(t, kernels.Full, g, gdot)
		if out == nil {
			out = terms
			for i := range out.Implicit1 {
				out.Implicit1[i] /= 4
			}
			continue
		}
		for i, v := range terms.Implicit1 {
			out.Implicit1[i] += v / 4
		}
	}
	return out
}
