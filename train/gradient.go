package train

import (
	"math"
	"slices"

	"github.com/anisoflight/anisoflight/internal/base/setting"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
)

// thetaGradient is d_θH, estimated from a batch.
type thetaGradient struct {
	estimate
	active []bool // rows that the batch has samples of
	terms  [len(kernels.PartNames)]*estimate
}

// estimate is a mean over a batch with its standard error for independent samples; with stratified times the error is a
// little smaller.
type estimate struct {
	mean    [][][]float64 // [row][subspace][K−1]
	squares float64       // Σ |value|² over the samples
	norm    float64       // of mean
	stderr  float64       // √Σ_i Var(mean_i), over all parameters i
}

func newEstimate(theta [][]schedule.Theta) *estimate { return &estimate{mean: zerosLike(theta)} }

// add adds subspace j of one of n samples.
func (e *estimate) add(row, j, n int, values []float64) {
	sum := e.mean[row][j]
	for k, v := range values {
		sum[k] += v / float64(n)
		e.squares += v * v
	}
}

// finish computes the norm and the standard error of n samples.
func (e *estimate) finish(n int) {
	norm2 := dotTables(e.mean, e.mean)
	e.norm, e.stderr = math.Sqrt(norm2), math.NaN()
	if n > 1 && setting.Finite(norm2) {
		variance := (e.squares/float64(n) - norm2) / float64(n-1)
		e.stderr = math.Sqrt(math.Max(variance, 0))
	}
}

// gradient carries the parts of A = ∂L/∂g and B = ∂L/∂ġ [B*J] of every sample to the parameters,
//
//	d_θH = E[ Σ_j A_j d_θ g_j + B_j d_θ ġ_j ],
//
// together and part by part.
func gradient(s *schedule.Schedule, theta [][]schedule.Theta, b batch, parts []kernels.Part) thetaGradient {
	out := thetaGradient{estimate: *newEstimate(theta), active: make([]bool, len(theta))}
	for _, p := range parts {
		out.terms[p.Index] = newEstimate(theta)
	}
	n, subspaces := len(b.t), s.J()
	dlogg := make([]float64, len(theta[0][0])+1)
	pulled, total := make([]float64, len(theta[0][0])), make([]float64, len(theta[0][0]))
	for i, t := range b.t {
		row := b.rows[i]
		out.active[row] = true
		for j := range subspaces {
			path, at := s.At(row, j), i*subspaces+j
			clear(total)
			for _, p := range parts {
				var B float64
				if p.B != nil {
					B = p.B[at]
				}
				clear(dlogg)
				clear(pulled)
				path.Chain(t, p.A[at], B, dlogg)
				theta[row][j].Pull(path.GT(), path.G0(), dlogg, pulled)
				out.terms[p.Index].add(row, j, n, pulled)
				for k, v := range pulled {
					total[k] += v
				}
			}
			out.add(row, j, n, total)
		}
	}
	out.finish(n)
	for _, p := range parts {
		out.terms[p.Index].finish(n)
	}
	return out
}

// byTerm returns the value of each term; NaN for terms that the mode does not have.
func (d thetaGradient) byTerm(value func(term *estimate) float64) (values [len(kernels.PartNames)]float64) {
	for i, term := range d.terms {
		values[i] = math.NaN()
		if term != nil {
			values[i] = value(term)
		}
	}
	return values
}

// share returns ⟨d_term, d⟩/|d|². The shares of the terms sum to 1.
func (d thetaGradient) share(term *estimate) float64 {
	return dotTables(term.mean, d.mean) / (d.norm * d.norm)
}

// cosine returns the cosine of the angle between two estimates, over the rows of which both have samples; NaN if there
// are none.
func cosine(a, b [][][]float64) float64 {
	var ab, aa, bb float64
	for r := range min(len(a), len(b)) {
		x, y := a[r:r+1], b[r:r+1]
		if xx, yy := dotTables(x, x), dotTables(y, y); xx != 0 && yy != 0 {
			ab, aa, bb = ab+dotTables(x, y), aa+xx, bb+yy
		}
	}
	return ab / math.Sqrt(aa*bb)
}

func dotTables(a, b [][][]float64) (sum float64) {
	for r, row := range a {
		for j, sub := range row {
			for k, v := range sub {
				sum += v * b[r][j][k]
			}
		}
	}
	return sum
}

// tableOf returns a copy of parameters or moments [row][subspace][K−1].
func tableOf[T ~[]float64](values [][]T) [][][]float64 {
	out := make([][][]float64, len(values))
	for r, row := range values {
		for _, v := range row {
			out[r] = append(out[r], slices.Clone(v))
		}
	}
	return out
}

func sameTable(a, b [][][]float64) bool {
	return slices.EqualFunc(a, b, func(a, b [][]float64) bool {
		return slices.EqualFunc(a, b, func(a, b []float64) bool { return len(a) == len(b) })
	})
}

// zerosLike returns a table of zeros of the shape of theta.
func zerosLike(theta [][]schedule.Theta) [][][]float64 {
	out := tableOf(theta)
	for _, row := range out {
		for _, v := range row {
			clear(v)
		}
	}
	return out
}
