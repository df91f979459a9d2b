// Package traintest holds networks whose flow is exact, with images drawn from their laws,
// for tests of runs and of passes.
package traintest

import (
	"math"
	"testing"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/internal/testing/mixturetest"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/data"
)

// Gaussian returns N(0, Σ) over images of h×w with variances[j] in subspace j of the
// basis as a network that is optimal for n images drawn from it.
func Gaussian(tb testing.TB, b *basis.Basis, variances []float64, n int) (kernels.Network, *data.Dataset) {
	tb.Helper()
	return gaussianOn(tb, b, b, variances, n)
}

// Whole is the same network with one noise level.
func Whole(tb testing.TB, b *basis.Basis, variances []float64) kernels.Network {
	tb.Helper()
	net, _ := gaussianOn(tb, b, basis.None(b.H(), b.W()), variances, 1)
	return net
}

// gaussianOn is Gaussian with noise in the subspaces of another basis.
func gaussianOn(tb testing.TB, b, noise *basis.Basis, variances []float64, n int) (kernels.Network, *data.Dataset) {
	tb.Helper()
	d := b.H() * b.W()
	cov, root := make([]float64, d*d), make([]float64, d*d)
	parts := make([][]float64, b.J())
	for j := range parts {
		parts[j] = make([]float64, d)
	}
	unit := make([]float64, d)
	for i := range d {
		clear(unit)
		unit[i] = 1
		if err := b.Split(-1, unit, parts); err != nil {
			tb.Fatal(err)
		}
		for j, p := range parts {
			for k, v := range p {
				cov[i*d+k] += variances[j] * v
				root[i*d+k] += math.Sqrt(variances[j]) * v
			}
		}
	}
	net, err := mixturetest.New(mixturetest.Settings{
		Height: b.H(), Width: b.W(), Channels: 1, Weights: []float64{1},
		Means: [][]float64{make([]float64, d)}, Covs: [][]float64{cov},
	}, noise)
	if err != nil {
		tb.Fatal(err)
	}
	white := make([]float32, n*d)
	latent.Normal(2, 0, white)
	pixels := make([]float32, n*d)
	for i := range n {
		for p := range d {
			var v float64
			for k := range d {
				v += root[p*d+k] * float64(white[i*d+k])
			}
			pixels[i*d+p] = float32(min(max(v, -1), 1))
		}
	}
	set, err := data.New(data.Images{Height: b.H(), Width: b.W(), Channels: 1, Float32: pixels})
	if err != nil {
		tb.Fatal(err)
	}
	return net, set
}

// Device returns the device of [devicetest.Fast]: the small networks of these tests are faster on it than their
// compilation by XLA.
func Device(tb testing.TB) *device.Device { return devicetest.Fast(tb) }

// OnDevice puts a network on the device, with no weights.
func OnDevice(tb testing.TB, net kernels.Network, b *basis.Basis) (*kernels.Model, *kernels.Weights) {
	tb.Helper()
	m, err := kernels.NewModel(Device(tb), net, b)
	if err != nil {
		tb.Fatal(err)
	}
	w, err := m.Upload(nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { w.Release(); m.Close() })
	return m, w
}

// Within fails the test where got is not want ± tol.
func Within(tb testing.TB, what string, got, want, tol float64) {
	tb.Helper()
	if !(math.Abs(got-want) <= tol) {
		tb.Errorf("%s: %v, want %v ± %v", what, got, want, tol)
	}
}

// EDM returns EDM's schedule with parameters on 16 knots.
func EDM(tb testing.TB, T, g0 float64) *schedule.Schedule {
	tb.Helper()
	s, err := schedule.FromTheta(schedule.Family{Basis: "none"}, nil, [][]schedule.Theta{{schedule.EDMTheta(16, T, g0)}},
		T, g0)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}
