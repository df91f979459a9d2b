package local_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/schedule/local"
)

// Without a ridge the weights that made the targets come back, from any start; with a large one they stay where they
// are. What a combination misses by is the sum of its squares, and sums of two halves are those of the whole.
func TestFit(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 4))
	for _, size := range []int{2, 4, 6} {
		want, near := make([]float64, size), make([]float64, size)
		for k := range near {
			want[k], near[k] = rng.NormFloat64(), rng.NormFloat64()
		}
		gram, half := local.NewGram(size), local.NewGram(size)
		var missed float64
		for i := range 200 {
			sample, off := make([]float64, size+1), 0.0
			for k := range near {
				sample[k] = rng.NormFloat64()
				sample[size] += want[k] * sample[k]
				off += near[k] * sample[k]
			}
			missed += (sample[size] - off) * (sample[size] - off)
			[]*local.Gram{gram, half}[i%2].Add(sample)
		}
		gram.Merge(half)
		if got := gram.Error(near); math.Abs(got-missed) > 1e-9*missed {
			t.Errorf("%d weights miss by %v, want %v", size, got, missed)
		}
		if got := gram.Error(want); got > 1e-9*missed {
			t.Errorf("the weights that made the targets miss by %v", got)
		}
		for _, c := range []struct {
			ridge float64
			want  []float64
		}{{0, want}, {1e15, near}} {
			for k, v := range gram.Fit(near, c.ridge) {
				if math.Abs(v-c.want[k]) > 1e-9 {
					t.Errorf("%d weights, ridge %v: w[%d] = %v, want %v", size, c.ridge, k, v, c.want[k])
				}
			}
		}
	}
}

// What cannot be told apart leaves the weights finite, and the combination as it was.
func TestFitOfNothing(t *testing.T) {
	gram, near := local.NewGram(2), []float64{0.3, 0.7}
	gram.Add([]float64{0, 0, 1})
	gram.Add([]float64{0, 0, 2})
	if got := gram.Fit(near, 0.1); !slices.Equal(got, near) {
		t.Errorf("weights %v", got)
	}
}
