package kernels_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/internal/testing/fixtures"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// orthonormal returns k random orthonormal rows of n values.
func orthonormal(rng *rand.Rand, k, n int) [][]float64 {
	m, q := mat.NewDense(n, k, nil), new(mat.Dense)
	m.Apply(func(int, int, float64) float64 { return rng.NormFloat64() }, m)
	var qr mat.QR
	qr.Factorize(m)
	qr.QTo(q)
	out := make([][]float64, k)
	for i := range out {
		out[i] = mat.Col(nil, i, q)
	}
	return out
}

// classBasis gives each of three classes three random orthonormal vectors, or shares the first class's.
func classBasis(t *testing.T, shared bool) *basis.Basis {
	t.Helper()
	rng, v := rand.New(rand.NewPCG(7, 7)), map[int][][]float64{}
	for label := range toyLabels {
		v[label] = orthonormal(rng, 3, toySide*toySide)
	}
	if shared {
		v = map[int][][]float64{basis.Shared: v[0]}
	}
	return dense(t, v)
}

// mix is the reference of Combine: Σ_j P_j y_j, by package basis.
func mix(t *testing.T, b *basis.Basis, label int, y [][]float64) []float64 {
	t.Helper()
	if !b.PerClass() {
		label = basis.Shared
	}
	hw := toySide * toySide
	out := make([]float64, toyPixels)
	parts := make([][]float64, b.J())
	for j := range parts {
		parts[j] = make([]float64, hw)
	}
	for c := range toyChannels {
		for j := range y {
			plane := make([]float64, hw)
			for i := range plane {
				plane[i] = y[j][i*toyChannels+c]
			}
			if err := b.Split(label, plane, parts); err != nil {
				t.Fatal(err)
			}
			for i := range plane {
				out[i*toyChannels+c] += parts[j][i]
			}
		}
	}
	return out
}

// TestTrajectory follows x ← Σ_j P_j(α_j x + Σ_i β_ji E_i + s_j ξ) on the host, for every kind of basis, and finds the
// device in the same place: history newest first, each sample on its own coefficients and its own class's basis.
func TestTrajectory(t *testing.T) {
	const n, history = 3, 2
	for name, b := range map[string]*basis.Basis{
		"none": toyBasis(t, 1), "bands": toyBasis(t, 3), "shared": classBasis(t, true), "per class": classBasis(t, false),
	} {
		t.Run(name, func(t *testing.T) {
			m, w := modelOn(t, devicetest.Fast(t), kernels.Float32, toy{}, b, toy{}.values(3))
			ctx := context.Background()
			in := toyBatch(5, n, b.J())
			labels := []int32{2, 0, 1}
			x := in.X0
			tr, err := m.NewTrajectory(w, narrow(x), labels, history, kernels.Bucket(n))
			if err != nil {
				t.Fatal(err)
			}
			defer tr.Close()
			rng := rand.New(rand.NewPCG(11, 0))
			var evals [][]float64
			for range 3 {
				g := make([]float64, n*b.J())
				for i := range g {
					g[i] = math.Exp(rng.NormFloat64())
				}
				if err := tr.Evaluate(ctx, g); err != nil {
					t.Fatal(err)
				}
				d, flow, _, err := m.Denoise(ctx, w, narrow(x), g, labels)
				if err != nil {
					t.Fatal(err)
				}
				denoised := make([]float32, len(x))
				if err := tr.Denoised(denoised); err != nil {
					t.Fatal(err)
				}
				fixtures.Check(t, "denoised", fixtures.Widen(denoised), fixtures.Widen(d),
					fixtures.Tolerance{RelMax: 1e-5, RelL2: 1e-5})
				evals = append([][]float64{fixtures.Widen(flow)}, evals...)
				h := min(history, len(evals))
				alpha, beta := make([]float64, n*b.J()), make([]float64, n*b.J()*h)
				for i := range alpha {
					alpha[i] = rng.NormFloat64()
				}
				for i := range beta {
					beta[i] = rng.NormFloat64()
				}
				if err := tr.Combine(ctx, alpha, beta); err != nil {
					t.Fatal(err)
				}
				xi, scale := toyBatch(17, n, b.J()).X0, make([]float64, n*b.J())
				for i := range scale {
					scale[i] = rng.Float64()
				}
				if err := tr.AddNoise(ctx, narrow(xi), scale); err != nil {
					t.Fatal(err)
				}
				next := make([]float64, 0, len(x))
				for s := range n {
					y := make([][]float64, b.J())
					for j := range y {
						at := s*b.J() + j
						y[j] = make([]float64, toyPixels)
						for k := range y[j] {
							y[j][k] = alpha[at]*x[s*toyPixels+k] + scale[at]*xi[s*toyPixels+k]
							for i := range h {
								y[j][k] += beta[at*h+i] * evals[i][s*toyPixels+k]
							}
						}
					}
					next = append(next, mix(t, b, int(labels[s]), y)...)
				}
				x = next
				got := make([]float32, len(x))
				if err := tr.X(got); err != nil {
					t.Fatal(err)
				}
				fixtures.Check(t, "x", fixtures.Widen(got), x, fixtures.Tolerance{RelMax: 1e-5, RelL2: 1e-5})
			}
		})
	}
}

func narrow(x []float64) []float32 {
	out := make([]float32, len(x))
	for i, v := range x {
		out[i] = float32(v)
	}
	return out
}

// TestBatchIndependence: a sample does not depend on its batch, beyond rounding.
func TestBatchIndependence(t *testing.T) {
	m, w := modelOn(t, devicetest.Fast(t), kernels.Float32, toy{}, toyBasis(t, 2), toy{}.values(3))
	in := toyBatch(9, 5, 2)
	all, _, _, err := m.Denoise(context.Background(), w, narrow(in.X0), in.G, in.Labels)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		one, _, _, err := m.Denoise(context.Background(), w, narrow(in.X0[i*toyPixels:(i+1)*toyPixels]), in.G[2*i:2*i+2],
			in.Labels[i:i+1])
		if err != nil {
			t.Fatal(err)
		}
		fixtures.Check(t, "sample", fixtures.Widen(one), fixtures.Widen(all[i*toyPixels:(i+1)*toyPixels]),
			fixtures.Tolerance{RelMax: 1e-5, RelL2: 1e-5})
	}
}

func TestBuckets(t *testing.T) {
	for n, want := range map[int]int{1: 1, 2: 2, 3: 4, 5: 8, 32: 32, 33: 64, 65: 96, 256: 256} {
		if got := kernels.Bucket(n); got != want {
			t.Errorf("Bucket(%d) = %d, want %d", n, got, want)
		}
	}
}

// TestBadInput: wrong arguments are InputErrors that name the argument, and used up objects say so.
func TestBadInput(t *testing.T) {
	m, w := modelOn(t, devicetest.Fast(t), kernels.Float32, toy{}, classBasis(t, false), toy{}.values(3))
	ctx := context.Background()
	x := make([]float32, toyPixels)
	denoise := func(x []float32, g []float64, label int32) error {
		_, _, _, err := m.Denoise(ctx, w, x, g, []int32{label})
		return err
	}
	tr, err := m.NewTrajectory(w, x, []int32{0}, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	_, short := m.Upload(toy{}.values(1)[1:])
	_, wrongMode := m.Estimate(ctx, w, kernels.EstimateInput{Mode: "exact", X0: x, Eps: x})
	_, noProbe := m.Estimate(ctx, w, kernels.EstimateInput{
		Mode: kernels.Full, X0: x, Eps: x, G: []float64{1, 1},
		Omega: []float64{1, 1}, Labels: []int32{0},
	})
	for _, c := range []struct {
		field string
		err   error
	}{
		{"x", denoise(x[1:], []float64{1, 1}, 0)},
		{"g", denoise(x, []float64{1, math.NaN()}, 0)},
		{"labels", denoise(x, []float64{1, 1}, toyLabels)},
		{"labels", denoise(x, []float64{1, 1}, -1)}, // no basis for no class
		{"alpha", tr.Combine(ctx, []float64{1}, nil)},
		{"beta", tr.Combine(ctx, []float64{1, 1}, []float64{1, 1, 1, 1})}, // two evaluations, of which one is kept
		{"values", short},
		{"probe", noProbe},
	} {
		var input *kernels.InputError
		if !errors.As(c.err, &input) || input.Field != c.field {
			t.Errorf("%s: error %v, want an InputError that names it", c.field, c.err)
		}
	}
	if wrongMode == nil {
		t.Error("there is a mode exact")
	}
	tr.Close()
	tr.Close()
	if err := tr.Evaluate(ctx, []float64{1, 1}); !errors.Is(err, kernels.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	gone, err := m.Upload(toy{}.values(1))
	if err != nil {
		t.Fatal(err)
	}
	gone.Release()
	if _, _, _, err := m.Denoise(ctx, gone, x, []float64{1, 1}, []int32{0}); !errors.Is(err, kernels.ErrReleased) {
		t.Errorf("after Release: %v", err)
	}
}
