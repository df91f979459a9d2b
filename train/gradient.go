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

// estimate is a mean over a batch and how far it is off, taking the samples for independent (stratified times make it a
// little smaller).
type estimate struct {
	mean    [][][]float64 // [row][subspace][K−1]
	squares float64       // Σ over samples of |value of the sample|²
	norm    float64       // of mean
	stderr  float64       // √Σ_i Var(mean_i), over all parameters i
}

func newEstimate(theta [][]schedule.Theta) *estimate { return &estimate{mean: zerosLike(theta)} }

// add takes in a sample of n, which has the one subspace.
func (e *estimate) add(row, j, n int, own []float64) {
	sum := e.mean[row][j]
	for k, v := range own {
		sum[k] += v / float64(n)
	}
}

// finish completes the norm and the standard error of n samples.
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
// in all and part by part.
func gradient(s *schedule.Schedule, theta [][]schedule.Theta, b batch, parts []kernels.Part) thetaGradient {
	out := thetaGradient{estimate: *newEstimate(theta), active: make([]bool, len(theta))}
	for _, p := range parts {
		out.terms[p.Index] = newEstimate(theta)
	}
	n, subspaces := len(b.t), s.J()
	dlogg := make([]float64, len(theta[0][0])+1)
	own, total := make([]float64, len(theta[0][0])), make([]float64, len(theta[0][0]))
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
				clear(own)
				path.Chain(t, p.A[at], B, dlogg)
				theta[row][j].Pull(path.GT(), path.G0(), dlogg, own)
				term := out.terms[p.Index]
				term.add(row, j, n, own)
				for k, v := range own {
					term.squares += v * v
					total[k] += v
				}
			}
			out.add(row, j, n, total)
			for _, v := range total {
				out.squares += v * v
			}
		}
	}
	out.finish(n)
	for _, p := range parts {
		out.terms[p.Index].finish(n)
	}
	return out
}

// byTerm returns a value of each term, or NaN for one that the mode lacks.
func (d thetaGradient) byTerm(value func(term *estimate) float64) (values [len(kernels.PartNames)]float64) {
	for i, term := range d.terms {
		values[i] = math.NaN()
		if term != nil {
			values[i] = value(term)
		}
	}
	return values
}

// share returns by how much a term makes up the whole: ⟨d_term, d⟩/|d|². The shares sum to 1.
func (d thetaGradient) share(term *estimate) float64 {
	return dotTables(term.mean, d.mean) / (d.norm * d.norm)
}

// cosine returns that of the angle between two estimates, over the rows that both have samples of; NaN where there is
// none, or one is zero.
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

func cloneTable(t [][][]float64) [][][]float64 {
	if t == nil {
		return nil
	}
	out := make([][][]float64, len(t))
	for r, row := range t {
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

// zerosLike returns a table of zeros of the shape of another.
func zerosLike[T ~[]float64](theta [][]T) [][][]float64 {
	out := make([][][]float64, len(theta))
	for r, row := range theta {
		out[r] = make([][]float64, len(row))
		for j, th := range row {
			out[r][j] = make([]float64, len(th))
		}
	}
	return out
}
