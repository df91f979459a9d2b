package kernels_test

import (
	"context"
	"testing"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/internal/testing/fixtures"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// rows cuts a flat tensor into n rows.
func rows(flat []float64, n int) [][]float64 {
	per := len(flat) / n
	out := make([][]float64, n)
	for i := range out {
		out[i] = flat[i*per : (i+1)*per]
	}
	return out
}

// interleave joins per-subspace columns [B] to rows [B*J].
func interleave(columns ...[]float64) []float64 {
	var out []float64
	for b := range columns[0] {
		for _, c := range columns {
			out = append(out, c[b])
		}
	}
	return out
}

// column is the inverse of interleave for one subspace.
func column(table []float64, j, n int) []float64 {
	out := make([]float64, len(table)/n)
	for b := range out {
		out[b] = table[b*n+j]
	}
	return out
}

// omegas returns the weights of the trajectory loss.
func omegas(g, gdot []float64, c float64) []float64 {
	out := make([]float64, len(g))
	for i := range g {
		out[i] = schedule.Omega(g[i], gdot[i], c)
	}
	return out
}

// chain sums A dg/dθ + B dġ/dθ over a batch, for a table θ [rows, K−1] of one subspace; row[b] is the sample's row.
func chain(theta [][]float64, row []int64, T, g0 float64, t, a, b []float64) []float64 {
	grads := make([][]float64, len(theta))
	for i := range grads {
		grads[i] = make([]float64, len(theta[i]))
	}
	for i := range t {
		schedule.Theta(theta[row[i]]).Chain(T, g0, t[i], a[i], b[i], grads[row[i]])
	}
	var out []float64
	for _, g := range grads {
		out = append(out, g...)
	}
	return out
}

// expect fails unless got is within a relative maximum of want.
func expect(t *testing.T, what string, got, want []float64, tol float64) {
	t.Helper()
	if got == nil {
		t.Fatalf("%s: the mode returned no such term", what)
	}
	fixtures.Check(t, what, got, want, fixtures.Tolerance{RelMax: tol, RelL2: tol})
}

// model64 returns a float64 model with weights. It is on the pure-Go device, which has nothing to compile: the tests
// that use it are about the mathematics.
func model64(t *testing.T, net kernels.Network, b *basis.Basis, values [][]float32) (*kernels.Model, *kernels.Weights) {
	t.Helper()
	return modelOn(t, devicetest.PureGo(t), kernels.Float64, net, b, values)
}

func modelAt(t *testing.T, p kernels.Precision, net kernels.Network, b *basis.Basis,
	values [][]float32,
) (*kernels.Model, *kernels.Weights) {
	t.Helper()
	return modelOn(t, devicetest.Open(t), p, net, b, values)
}

func modelOn(t *testing.T, dev *device.Device, p kernels.Precision, net kernels.Network, b *basis.Basis,
	values [][]float32,
) (*kernels.Model, *kernels.Weights) {
	t.Helper()
	m, err := kernels.NewModelAt(p, dev, net, b)
	if err != nil {
		t.Fatal(err)
	}
	w, err := m.Upload(values)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Release(); m.Close() })
	return m, w
}

func estimate64(t *testing.T, m *kernels.Model, w *kernels.Weights, in kernels.EstimateInput64) *kernels.Terms {
	t.Helper()
	terms, err := m.Estimate64(context.Background(), w, in)
	if err != nil {
		t.Fatal(err)
	}
	return terms
}

// explicitWeight is the part of A that comes from the weight ω itself.
func explicitWeight(terms *kernels.Terms, g, gdot []float64, c float64) []float64 {
	return terms.Parts(omegas(g, gdot, c), g, gdot, c, 1)[0].A
}
