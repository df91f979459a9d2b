package kernels_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/internal/fixtures"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// randomAxes returns an orthonormal matrix for each frequency of the toy's images.
func randomAxes(rng *rand.Rand) []float64 {
	var out []float64
	for range toySide * toySide {
		out = append(out, slices.Concat(orthonormal(rng, toyChannels, toyChannels)...)...)
	}
	return out
}

// TestCombineCoordinates follows x ← Fᵀ (w_0 ∘ F x + Σ_i w_(1+i) ∘ F E_i) on the host by basis.Frequencies, with rows
// of their own, and states kept beside denoised images.
func TestCombineCoordinates(t *testing.T) {
	const n, keep, steps = 3, 4, 3
	m, w := modelAt(t, kernels.Float32, toy{}, toyBasis(t, 1), toy{}.values(3))
	ctx, rng := context.Background(), rand.New(rand.NewPCG(2, 9))
	axes, rows := [][]float64{randomAxes(rng), nil}, []int32{0, 1, 0}
	x := toyBatch(5, n, 1).X0
	tr, err := m.NewTrajectory(ctx, w, narrow(x), nil, keep)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	tr.KeepDenoised()
	tr.KeepStates()
	if err := tr.UseCoordinates(axes, rows); err != nil {
		t.Fatal(err)
	}
	var history [][]float64
	for range steps {
		g := []float64{0.3, 2, 0.7}
		if err := tr.Evaluate(ctx, g); err != nil {
			t.Fatal(err)
		}
		d, _, _, err := m.Denoise(ctx, w, narrow(x), g, nil)
		if err != nil {
			t.Fatal(err)
		}
		history = append([][]float64{fixtures.Widen(d), x}, history...)
		parts := 1 + min(keep, len(history))
		weights := make([]float64, len(axes)*parts*toyPixels)
		for i := range weights {
			weights[i] = rng.NormFloat64()
		}
		if err := tr.CombineCoordinates(ctx, weights); err != nil {
			t.Fatal(err)
		}
		next := make([]float64, n*toyPixels)
		for s := range n {
			r := int(rows[s])
			f := basis.NewFrequencies(toySide, toySide, toyChannels, axes[r])
			y, sum := make([]float64, toyPixels), make([]float64, toyPixels)
			for k := range parts {
				from := x
				if k > 0 {
					from = history[k-1]
				}
				f.Forward(y, from[s*toyPixels:(s+1)*toyPixels])
				for i, v := range y {
					sum[i] += weights[(r*parts+k)*toyPixels+i] * v
				}
			}
			f.Inverse(next[s*toyPixels:(s+1)*toyPixels], sum)
		}
		x = next
		got := make([]float32, len(x))
		if err := tr.X(got); err != nil {
			t.Fatal(err)
		}
		fixtures.Check(t, "x", fixtures.Widen(got), x, fixtures.Tolerance{RelMax: 1e-5, RelL2: 1e-5})
	}
}
