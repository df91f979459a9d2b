package mixturetest_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/gomlx/gomlx/pkg/core/graph"
	"gonum.org/v1/gonum/mat"

	"github.com/anisoflight/anisoflight/internal/devicetest"
	"github.com/anisoflight/anisoflight/internal/mixturetest"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// random returns a mixture of n Gaussians on h×w×c images.
func random(seed uint64, n, h, w, c int) mixturetest.Settings {
	rng := rand.New(rand.NewPCG(seed, 0))
	d := h * w * c
	s := mixturetest.Settings{Height: h, Width: w, Channels: c}
	for range n {
		mean, root := make([]float64, d), mat.NewDense(d, d, nil)
		for i := range d {
			mean[i] = rng.NormFloat64()
			for j := range d {
				root.Set(i, j, rng.NormFloat64()/math.Sqrt(float64(d)))
			}
			root.Set(i, i, root.At(i, i)+0.3)
		}
		var cov mat.Dense
		cov.Mul(root, root.T())
		for i := range d {
			cov.Set(i, i, cov.At(i, i)+0.05)
		}
		s.Weights = append(s.Weights, 0.2+rng.Float64())
		s.Means = append(s.Means, mean)
		s.Covs = append(s.Covs, append([]float64(nil), cov.RawMatrix().Data...))
	}
	return s
}

// logDensity is ln p_t(x) by Cholesky factors, with noise covariance M.
func logDensity(t *testing.T, s mixturetest.Settings, m *mat.SymDense, x []float64) float64 {
	t.Helper()
	d := len(x)
	var total, sum float64
	for _, w := range s.Weights {
		total += w
	}
	for i, w := range s.Weights {
		cov := mat.NewSymDense(d, append([]float64(nil), s.Covs[i]...))
		cov.AddSym(cov, m)
		var chol mat.Cholesky
		if !chol.Factorize(cov) {
			t.Fatal("covariance is not positive definite")
		}
		diff := mat.NewVecDense(d, nil)
		for k := range d {
			diff.SetVec(k, x[k]-s.Means[i][k])
		}
		var a mat.VecDense
		if err := chol.SolveVecTo(&a, diff); err != nil {
			t.Fatal(err)
		}
		sum += w / total * math.Exp(-0.5*(mat.Dot(diff, &a)+chol.LogDet()))
	}
	return math.Log(sum)
}

// TestFlowIsTheScore: the flow is M^{1/2} times the gradient of ln p_t, taken by central differences of the density on
// the host, in three bands of two channels.
func TestFlowIsTheScore(t *testing.T) {
	s := random(1, 2, 3, 3, 2)
	b, err := basis.DCTBands(3, 3, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	net, err := mixturetest.New(s, b)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(2, 0))
	const d = 18
	g := []float64{0.4, 2, 0.05}
	x := make([]float64, d)
	for i := range x {
		x[i] = rng.NormFloat64()
	}
	flow := devicetest.Compute(t, devicetest.Open(t), "", func(in []*graph.Node) []*graph.Node {
		return []*graph.Node{net.Flow(nil, in[0], in[1], nil)}
	}, devicetest.Input{Flat: x, Dims: []int{1, 3, 3, 2}}, devicetest.Input{Flat: g, Dims: []int{1, 3}})[0]
	noise := mat.NewSymDense(d, nil)
	for i := range d {
		unit := make([]float64, d)
		unit[i] = 1
		for k, v := range scale(t, b, unit, g) {
			noise.SetSym(i, k, v)
		}
	}
	score := make([]float64, d)
	const h = 1e-4
	for i := range d {
		at := func(step float64) float64 {
			y := append([]float64(nil), x...)
			y[i] += step
			return logDensity(t, s, noise, y)
		}
		score[i] = (8*(at(h)-at(-h)) - (at(2*h) - at(-2*h))) / (12 * h)
	}
	for i, want := range scale(t, b, score, []float64{math.Sqrt(g[0]), math.Sqrt(g[1]), math.Sqrt(g[2])}) {
		if math.Abs(flow[i]-want) > 1e-8 {
			t.Errorf("flow %d is %g, M^{1/2}∇ ln p is %g", i, flow[i], want)
		}
	}
}

// scale returns Σ_j c_j P_j x for 3×3×2 images, by package basis.
func scale(t *testing.T, b *basis.Basis, x, c []float64) []float64 {
	t.Helper()
	out := make([]float64, len(x))
	parts := [][]float64{make([]float64, 9), make([]float64, 9), make([]float64, 9)}
	for ch := range 2 {
		plane := make([]float64, 9)
		for i := range plane {
			plane[i] = x[2*i+ch]
		}
		if err := b.Split(basis.Shared, plane, parts); err != nil {
			t.Fatal(err)
		}
		for j, part := range parts {
			for i, v := range part {
				out[2*i+ch] += c[j] * v
			}
		}
	}
	return out
}
