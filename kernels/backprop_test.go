package kernels_test

import (
	"math"
	"testing"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/parametrization"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// toyBasis has J frequency bands.
func toyBasis(t *testing.T, j int) *basis.Basis {
	t.Helper()
	if j == 1 {
		return basis.None(toySide, toySide)
	}
	b, err := basis.DCTBands(toySide, toySide, []int{1, 3}[:j-1]...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestBackpropIsAutodiff: mode backprop, a closed form over one reverse pass of ⟨u, F⟩, equals ordinary differentiation
// of the loss through the state, the input scaling, the noise label, the ratio inputs and the output scaling.
func TestBackpropIsAutodiff(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		j  int
		as parametrization.Config
	}{
		"edm, one subspace":    {1, parametrization.Config{Kind: parametrization.EDM}},
		"edm, two subspaces":   {2, parametrization.Config{Kind: parametrization.EDM}},
		"edm, three subspaces": {3, parametrization.Config{Kind: parametrization.EDM}},
		"vp":                   {2, parametrization.Config{Kind: parametrization.VP}},
		"ve":                   {2, parametrization.Config{Kind: parametrization.VE}},
		"v":                    {2, parametrization.Config{Kind: parametrization.V, AlphasCumprod: uniformTable()}},
		"flow":                 {2, parametrization.Config{Kind: parametrization.Flow, Steps: 1000}},
	} {
		t.Run(name, func(t *testing.T) {
			net := toy{ratios: c.j - 1, as: parametrized(t, c.as)}
			m, w := model64(t, net, toyBasis(t, c.j), net.values(1))
			in := toyBatch(uint64(c.j), 4, c.j)
			want, err := m.LevelGradient(w, in)
			if err != nil {
				t.Fatal(err)
			}
			got := estimate64(t, m, w, in)
			if got.Mode != kernels.Backprop {
				t.Fatalf("auto resolved to %s", got.Mode)
			}
			for i := range want {
				if d := math.Abs(got.Backprop[i]-want[i]) / math.Abs(want[i]); !(d < 1e-10) {
					t.Errorf("entry %d: %g, want %g", i, got.Backprop[i], want[i])
				}
			}
		})
	}
}

// TestBlindNetworkIsFull: a network that sees the geometric mean of two variances alone gets the full estimator, and
// one whose ratio inputs do not match the basis is refused.
func TestBlindNetworkIsFull(t *testing.T) {
	net := toy{}
	m, _ := model64(t, net, toyBasis(t, 2), net.values(1))
	if mode, err := m.Resolve(kernels.Auto); err != nil || mode != kernels.Full {
		t.Errorf("auto is %s, %v", mode, err)
	}
	if _, err := kernels.NewModel(nil, toy{ratios: 2}, toyBasis(t, 2)); err == nil {
		t.Error("a network with two ratio inputs went with two subspaces")
	}
}
