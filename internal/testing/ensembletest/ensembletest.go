// Package ensembletest follows plans on the host, in float64, by the formula of [solver.Plan], with the exact denoiser
// of a Gaussian mixture: what samplers on a device are compared with, and what searches are tested on.
package ensembletest

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/internal/testing/mixturetest"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/local"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/solver/gaussian"
	"github.com/anisoflight/anisoflight/train/data"
)

// Mixture is the ensemble of a mixture, with noise in the subspaces of a basis. It implements [sampler.Ensemble].
type Mixture struct {
	mixturetest.Settings
	Basis *basis.Basis
	// Guide, unless it is nil, is the mixture of D₀ in D₀ + s (D₁ − D₀), and Scale s.
	Guide *Mixture
	Scale float64
}

// Smooth returns a mixture of n normal laws of size×size pixels whose variances fall with the frequency, in the noise
// of one level.
func Smooth(size, n int) *Mixture {
	m := &Mixture{
		Settings: mixturetest.Settings{Height: size, Width: size, Channels: 1}, Basis: basis.None(size, size),
	}
	r := rand.New(rand.NewPCG(1, uint64(n)))
	transform := basis.NewFrequencies(size, size, 1, nil)
	for i := range n {
		mean, variance := make([]float64, size*size), make([]float64, size*size)
		for f := range variance {
			fall := 1 + float64(f/size*f/size+f%size*(f%size))
			variance[f] = 0.2 / fall / fall * float64(1+i) / float64(n)
			if n > 1 {
				mean[f] = r.NormFloat64() / fall
			}
		}
		transform.Inverse(mean, mean)
		m.Weights, m.Means = append(m.Weights, 1), append(m.Means, mean)
		m.Covs = append(m.Covs, covariance(transform, variance))
	}
	return m
}

// covariance returns that of coordinates which are independent, [d·d].
func covariance(transform *basis.Frequencies, variance []float64) []float64 {
	d := transform.Size()
	out, unit := make([]float64, d*d), make([]float64, d)
	for i := range d {
		row := out[i*d : (i+1)*d]
		clear(unit)
		unit[i] = 1
		transform.Forward(row, unit)
		for f, v := range variance {
			row[f] *= v
		}
		transform.Inverse(row, row)
	}
	return out
}

// Data returns n draws as a data set.
func (m *Mixture) Data(tb testing.TB, n int) *data.Dataset {
	tb.Helper()
	law, err := mixturetest.New(m.Settings, nil)
	if err != nil {
		tb.Fatal(err)
	}
	r := rand.New(rand.NewPCG(2, 3))
	x, narrow := make([]float64, n*m.size()), make([]float32, n*m.size())
	law.Sample(x, func(z []float64) {
		for i := range z {
			z[i] = r.NormFloat64()
		}
	}, r.Float64)
	for i, v := range x {
		narrow[i] = float32(v)
	}
	d, err := data.New(data.Images{
		Height: m.Height, Width: m.Width, Channels: m.Channels, Float32: narrow, Unbounded: true,
	})
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

func (m *Mixture) size() int { return m.Height * m.Width * m.Channels }

// Shape implements [sampler.Ensemble].
func (m *Mixture) Shape() (h, w, c int) { return m.Height, m.Width, m.Channels }

// Statistics implements [sampler.Ensemble]: they are those of the normal law with the mixture's moments.
func (m *Mixture) Statistics(ctx context.Context, T float64, _ *gaussian.Spectrum, report func(done, total int),
) (*local.Statistics, error) {
	transform := basis.NewFrequencies(m.Height, m.Width, m.Channels, nil)
	mean, row := make([]float64, m.size()), local.Row{Variance: make([]float64, m.size())}
	for i, own := range m.Means {
		for k, v := range own {
			mean[k] += m.weight(i) * v
		}
	}
	for i, own := range m.Means {
		d := m.size()
		off := make([]float64, d)
		for k, v := range own {
			off[k] = v - mean[k]
		}
		transform.Forward(off, off)
		for f := range d {
			unit := make([]float64, d)
			unit[f] = 1
			transform.Inverse(unit, unit)
			v := mat.NewVecDense(d, unit)
			row.Variance[f] += m.weight(i) * (off[f]*off[f] + mat.Inner(v, mat.NewSymDense(d, slices.Clone(m.Covs[i])), v))
		}
	}
	const points = 12
	lowest := min(0.01, math.Sqrt(T)/10)
	var sigma []float64
	for i := range points {
		report(i, points)
		s := lowest * math.Pow(math.Sqrt(T)/lowest, float64(i)/(points-1))
		q := make([]float64, m.size())
		for f, v := range row.Variance {
			q[f] = v / (v + s*s)
		}
		sigma, row.Gain = append(sigma, s), append(row.Gain, q)
	}
	report(points, points)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return local.New(basis.Bands{H: m.Height, W: m.Width, C: m.Channels}, nil, sigma, []local.Row{row})
}

// NormalStatistics returns the statistics of a denoiser that is exact for centred normal data whose parts have these
// variances: q = λ/(λ + σ²) at every noise level.
func NormalStatistics(tb testing.TB, bands basis.Bands, variances []float64) *local.Statistics {
	tb.Helper()
	sigma := []float64{0.1, 10}
	row := local.Row{Variance: variances}
	for _, s := range sigma {
		q := make([]float64, len(variances))
		for f, v := range variances {
			q[f] = v / (v + s*s)
		}
		row.Gain = append(row.Gain, q)
	}
	statistics, err := local.New(bands, nil, sigma, []local.Row{row})
	if err != nil {
		tb.Fatal(err)
	}
	return statistics
}

func (m *Mixture) weight(i int) float64 {
	var sum float64
	for _, w := range m.Weights {
		sum += w
	}
	return m.Weights[i] / sum
}

// Follow implements [sampler.Ensemble].
func (m *Mixture) Follow(ctx context.Context, t sampler.Trajectories, into ...sampler.Reducer) error {
	p, begin := t.Plan, sampler.StartOf(t.Start, m.Basis)
	everyStage := make([]bool, len(into))
	for i, r := range into {
		everyStage[i] = r.Begin(m.size()).EveryStage
	}
	init, err := m.weighing(nil, p.Init)
	if err != nil {
		return err
	}
	x, denoised := make([][]float64, len(t.Labels)), make([][]float64, len(t.Labels))
	for i, label := range t.Labels {
		latent := make([]float32, m.size())
		t.Latent(i, latent)
		if begin != nil {
			if err := begin.Draw(label, p, latent); err != nil {
				return err
			}
		}
		for _, v := range latent {
			x[i] = append(x[i], float64(v))
		}
		if begin == nil {
			x[i] = init(x[i])
		}
	}
	add := func(every bool, stage int, denoised [][]float64) {
		for i, r := range into {
			if everyStage[i] == every {
				r.Add(stage, narrow(x), narrow(denoised))
			}
		}
	}
	add(true, -1, nil)
	history := make([][][]float64, len(x)) // of each, newest first
	for k, st := range p.Stages {
		evaluate, err := m.guided(st)
		if err != nil {
			return err
		}
		combine, err := m.combining(p, st)
		if err != nil {
			return err
		}
		for i := range x {
			if err := ctx.Err(); err != nil {
				return err
			}
			d, flow := evaluate(x[i])
			denoised[i] = d
			newest := [][]float64{flow}
			if p.Data {
				newest[0] = d
			}
			if p.States {
				newest = append(newest, x[i])
			}
			history[i] = append(newest, history[i]...)
			x[i] = combine(x[i], history[i])
		}
		if t.Progress != nil {
			t.Progress(len(x))
		}
		add(true, k, denoised)
	}
	add(false, len(p.Stages)-1, nil)
	return nil
}

// guided returns what evaluates a stage, with its guidance if there is any.
func (m *Mixture) guided(st solver.Stage) (func(x []float64) (denoised, flow []float64), error) {
	own, err := m.evaluating(st)
	if err != nil || m.Guide == nil {
		return own, err
	}
	other, err := m.Guide.evaluating(st)
	if err != nil {
		return nil, err
	}
	scale := m.Scale
	if st.Guidance != nil {
		scale = 1 + *st.Guidance*(m.Scale-1)
	}
	return func(x []float64) (denoised, flow []float64) {
		denoised, flow = own(x)
		d0, flow0 := other(x)
		for i := range denoised {
			denoised[i] = d0[i] + scale*(denoised[i]-d0[i])
			flow[i] = flow0[i] + scale*(flow[i]-flow0[i])
		}
		return denoised, flow
	}, nil
}

// evaluating returns what evaluates D and the flow at the noise of a stage:
//
//	D = x + M^½ flow,   flow = M^½ Σ_i ρ_i S_i⁻¹ (μ_i − x),   S_i = Σ_i + M.
func (m *Mixture) evaluating(st solver.Stage) (func(x []float64) (denoised, flow []float64), error) {
	if st.Noise != nil {
		return nil, errors.New("ensembletest: no noise is added")
	}
	noise, err := m.Basis.Weighted(basis.Shared, st.G)
	if err != nil {
		return nil, err
	}
	deviation := make([]float64, len(st.G))
	for j, g := range st.G {
		deviation[j] = math.Sqrt(g)
	}
	root, err := m.weighing(nil, deviation)
	if err != nil {
		return nil, err
	}
	d := m.size()
	laws := make([]mat.Cholesky, len(m.Means))
	for i, cov := range m.Covs {
		s := mat.NewSymDense(d, slices.Clone(cov))
		for a := range d {
			for b := a % m.Channels; b <= a; b += m.Channels {
				s.SetSym(a, b, s.At(a, b)+noise.At(a/m.Channels, b/m.Channels))
			}
		}
		if !laws[i].Factorize(s) {
			return nil, errors.New("ensembletest: a covariance is not positive definite")
		}
	}
	return func(x []float64) (denoised, flow []float64) {
		off, log, most := make([]mat.VecDense, len(laws)), make([]float64, len(laws)), math.Inf(-1)
		for i := range laws {
			diff := mat.NewVecDense(d, slices.Clone(m.Means[i]))
			diff.SubVec(diff, mat.NewVecDense(d, x))
			_ = laws[i].SolveVecTo(&off[i], diff) // noise makes it well conditioned
			log[i] = math.Log(m.Weights[i]) - (laws[i].LogDet()+mat.Dot(diff, &off[i]))/2
			most = max(most, log[i])
		}
		var sum float64
		score := make([]float64, d)
		for i := range laws {
			log[i] = math.Exp(log[i] - most)
			sum += log[i]
		}
		for i := range laws {
			for k := range score {
				score[k] += log[i] / sum * off[i].AtVec(k)
			}
		}
		flow = root(score)
		denoised = root(flow)
		for k, v := range x {
			denoised[k] += v
		}
		return denoised, flow
	}, nil
}

// combining returns what combines the state and the evaluations at the end of a stage.
func (m *Mixture) combining(p *solver.Plan, st solver.Stage) (func(x []float64, history [][]float64) []float64, error) {
	var terms []func([]float64) []float64
	for i := -1; i < p.History; i++ {
		by := make([]float64, len(st.Alpha))
		for part := range by {
			switch {
			case i < 0:
				by[part] = st.Alpha[part]
			case i < len(st.Beta[part]):
				by[part] = st.Beta[part][i]
			}
		}
		term, err := m.weighing(p.Coordinates, by)
		if err != nil {
			return nil, err
		}
		terms = append(terms, term)
	}
	return func(x []float64, history [][]float64) []float64 {
		out := terms[0](x)
		for i, e := range history[:min(len(history), p.History)] {
			for k, v := range terms[1+i](e) {
				out[k] += v
			}
		}
		return out
	}, nil
}

// weighing returns what weighs the parts of an image: those of bands, or the subspaces if they are nil.
func (m *Mixture) weighing(by *solver.Coordinates, weights []float64) (func(x []float64) []float64, error) {
	if by != nil {
		transform := by.Frequencies(by.Axes[by.Row])
		band, _ := by.Index()
		return func(x []float64) []float64 {
			y := make([]float64, len(x))
			transform.Forward(y, x)
			for f := range y {
				y[f] *= weights[band[f/by.C]*by.C+f%by.C]
			}
			transform.Inverse(y, y)
			return y
		}, nil
	}
	matrix, err := m.Basis.Weighted(basis.Shared, weights)
	if err != nil {
		return nil, err
	}
	return func(x []float64) []float64 {
		out := mat.NewDense(m.Height*m.Width, m.Channels, nil)
		out.Mul(matrix, mat.NewDense(m.Height*m.Width, m.Channels, slices.Clone(x)))
		return out.RawMatrix().Data
	}, nil
}

func narrow(rows [][]float64) (out []float32) {
	for _, row := range rows {
		for _, v := range row {
			out = append(out, float32(v))
		}
	}
	return out
}
