package local_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/anisoflight/anisoflight/schedule/local"
)

// Without a ridge the weights that made the targets come back, from any start; with a large one they stay where they
// are.
func TestFit(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 4))
	for _, size := range []int{2, 4, 6} {
		want, near := make([]float64, size), make([]float64, size)
		z, y := make([][]float64, size), make([]float64, 200)
		for k := range z {
			want[k], near[k] = rng.NormFloat64(), rng.NormFloat64()
			z[k] = make([]float64, len(y))
			for i := range y {
				z[k][i] = rng.NormFloat64()
				y[i] += want[k] * z[k][i]
			}
		}
		for _, c := range []struct {
			ridge float64
			want  []float64
		}{{0, want}, {1e15, near}} {
			for k, v := range local.Fit(z, y, near, c.ridge) {
				if math.Abs(v-c.want[k]) > 1e-9 {
					t.Errorf("%d weights, ridge %v: w[%d] = %v, want %v", size, c.ridge, k, v, c.want[k])
				}
			}
		}
	}
}

// What cannot be told apart leaves the weights finite, and the combination as it was.
func TestFitOfNothing(t *testing.T) {
	zeros := [][]float64{{0, 0}, {0, 0}}
	for k, v := range local.Fit(zeros, []float64{1, 2}, []float64{0.3, 0.7}, 0.1) {
		if v != []float64{0.3, 0.7}[k] {
			t.Errorf("w[%d] = %v", k, v)
		}
	}
}
