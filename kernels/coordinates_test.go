package kernels_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/internal/testing/fixtures"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// randomAxes returns an orthonormal matrix of the toy's channels for each band.
func randomAxes(rng *rand.Rand, bands int) []float64 {
	var out []float64
	for range bands {
		out = append(out, slices.Concat(orthonormal(rng, toyChannels, toyChannels)...)...)
	}
	return out
}

// TestCombineCoordinates follows x ← Fᵀ (w_0 ∘ F x + Σ_i w_(1+i) ∘ F E_i) on the host by basis.Frequencies, with rows
// of their own, and states kept beside denoised images: with weights for every frequency, and for bands.
func TestCombineCoordinates(t *testing.T) {
	for _, number := range []int{0, 1, 4} {
		t.Run(fmt.Sprintf("%d bands", number), func(t *testing.T) {
			combinesInBands(t, basis.Bands{H: toySide, W: toySide, C: toyChannels, N: number})
		})
	}
}

func combinesInBands(t *testing.T, bands basis.Bands) {
	const n, keep, steps = 3, 4, 3
	m, w := modelOn(t, devicetest.Fast(t), kernels.Float32, toy{}, toyBasis(t, 1), toy{}.values(3))
	ctx, rng := context.Background(), rand.New(rand.NewPCG(2, 9))
	band, count := bands.Index()
	axes, rows := [][]float64{randomAxes(rng, count), nil}, []int32{0, 1, 0}
	x := toyBatch(5, n, 1).X0
	tr, err := m.NewTrajectory(w, narrow(x), nil, keep, kernels.Bucket(n))
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	tr.KeepDenoised()
	tr.KeepStates()
	if err := tr.UseCoordinates(bands, axes, rows); err != nil {
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
		terms := 1 + min(keep, len(history))
		weights := make([]float64, len(axes)*terms*bands.Parts())
		for i := range weights {
			weights[i] = rng.NormFloat64()
		}
		if err := tr.CombineCoordinates(ctx, weights); err != nil {
			t.Fatal(err)
		}
		next := make([]float64, n*toyPixels)
		for s := range n {
			r := int(rows[s])
			f := bands.Frequencies(axes[r])
			y, sum := make([]float64, toyPixels), make([]float64, toyPixels)
			for k := range terms {
				from := x
				if k > 0 {
					from = history[k-1]
				}
				f.Forward(y, from[s*toyPixels:(s+1)*toyPixels])
				for i, v := range y {
					part := band[i/toyChannels]*toyChannels + i%toyChannels
					sum[i] += weights[(r*terms+k)*bands.Parts()+part] * v
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
