package train

import (
	"math"

	"github.com/anisoflight/anisoflight/schedule"
)

// thetaGradient is d_θH, estimated from a batch.
type thetaGradient struct {
	mean   [][][]float64 // [row][subspace][K−1], batch mean
	active []bool        // rows that the batch has samples of
	norm   float64       // of mean
	stderr float64       // √Σ_i Var(mean_i), over all parameters i
}

// gradient carries A = ∂L/∂g and B = ∂L/∂ġ [B*J] of every sample to the parameters,
//
//	d_θH = E[ Σ_j A_j d_θ g_j + B_j d_θ ġ_j ],
//
// and estimates how far the batch mean is off, taking the samples for independent
// (stratified times make it a little smaller).
func gradient(s *schedule.Schedule, theta [][]schedule.Theta, b batch, A, B []float64) thetaGradient {
	out := thetaGradient{mean: zerosLike(theta), active: make([]bool, len(theta))}
	n, subspaces := len(b.t), s.J()
	dlogg := make([]float64, len(theta[0][0])+1)
	own := make([]float64, len(theta[0][0]))
	var squares float64 // Σ over samples of |gradient of the sample|²
	for i, t := range b.t {
		row := b.rows[i]
		out.active[row] = true
		for j := range subspaces {
			path := s.At(row, j)
			clear(dlogg)
			clear(own)
			path.Chain(t, A[i*subspaces+j], B[i*subspaces+j], dlogg)
			theta[row][j].Pull(path.GT(), path.G0(), dlogg, own)
			sum := out.mean[row][j]
			for k, v := range own {
				sum[k] += v / float64(n)
				squares += v * v
			}
		}
	}
	var norm2 float64
	for _, row := range out.mean {
		for _, sub := range row {
			for _, v := range sub {
				norm2 += v * v
			}
		}
	}
	out.norm, out.stderr = math.Sqrt(norm2), math.NaN()
	if n > 1 {
		variance := (squares/float64(n) - norm2) / float64(n-1)
		out.stderr = math.Sqrt(math.Max(variance, 0))
	}
	if !finite(norm2) {
		out.stderr = math.NaN()
	}
	return out
}
