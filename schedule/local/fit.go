package local

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

// Gram has the sums that least squares need of samples of a combination and of its target y: sums over the samples of
// products of the columns
//
//	x_0,  D_0 − x_0,  D_1 − D_0,  D_1 − x_1,  D_2 − D_1,  …,  y − x_0.
//
// The combination weighs z = x_0, D_0, D_1, x_1, D_2, x_2, …, newest first: the running state, then each evaluation and
// the state that it was made at. These are nearly alike at low noise, and their differences are not. The sums of
// several sets of samples add up.
type Gram struct {
	terms int
	sums  *mat.SymDense // [terms + 1]²
}

// NewGram returns the sums of no samples, for combinations of an even number of terms.
func NewGram(terms int) *Gram { return &Gram{terms, mat.NewSymDense(terms+1, nil)} }

// Add adds the sample z = x_0, D_0, D_1, x_1, …, y and overwrites it by its columns.
func (g *Gram) Add(z []float64) {
	z[g.terms] -= z[0]
	for k := g.terms - 2; k >= 2; k -= 2 {
		z[k+1] = z[k] - z[k+1]
		z[k] -= z[before(k)]
	}
	z[1] -= z[0]
	sums, stride := g.sums.RawSymmetric().Data, g.terms+1
	for a, v := range z {
		for b := a; b < stride; b++ {
			sums[a*stride+b] += v * z[b]
		}
	}
}

// Sums returns the sums of products of all columns, [terms + 1]².
func (g *Gram) Sums() []float64 {
	n := g.terms + 1
	out := make([]float64, n*n)
	for i := range out {
		out[i] = g.sums.At(i/n, i%n)
	}
	return out
}

// AddSums adds sums of products of all columns, [terms + 1]², that were computed elsewhere.
func (g *Gram) AddSums(sums []float64) { g.sums.AddSym(g.sums, mat.NewSymDense(g.terms+1, sums)) }

// Merge adds the samples of o.
func (g *Gram) Merge(o *Gram) { g.sums.AddSym(g.sums, o.sums) }

// Fit returns the weights w of the combination that is closest to the target, near given weights,
//
//	min_w  Σ_n (y_n − Σ_k w_k z_kn)² + ridge Σ_k |z′_k|² (c_k − c⁰_k)².
//
// c are the coefficients of the columns z′ for the weights w, and c⁰ those for near. If the normal equations have no
// solution it returns near.
func (g *Gram) Fit(near []float64, ridge float64) []float64 {
	n := g.terms
	normal, rhs := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
	normal.CopySym(g.sums.SliceSym(0, n))
	start := g.coefficients(near)
	for a := range n {
		rest := g.sums.At(a, n)
		for b, c := range start {
			rest -= g.sums.At(a, b) * c
		}
		rhs.SetVec(a, rest)
		normal.SetSym(a, a, (1+ridge)*normal.At(a, a)+1e-300)
	}
	var factor mat.Cholesky
	var step mat.VecDense
	if !factor.Factorize(normal) || factor.SolveVecTo(&step, rhs) != nil {
		return near
	}
	w := weights(step.RawVector().Data)
	for k, v := range near {
		w[k] += v
	}
	return w
}

// Error returns Σ_n (y_n − Σ_k w_k z_kn)².
func (g *Gram) Error(w []float64) float64 {
	c := mat.NewVecDense(g.terms+1, append(g.coefficients(w), -1))
	return max(0, mat.Inner(c, g.sums, c))
}

// Gain returns (Σ_n y_n² / Σ_n (Σ_k w_k z_kn)²)^½, the factor by which the combination is too small, or 1 if that is 0
// or not finite.
func (g *Gram) Gain(w []float64) float64 {
	c := append(g.coefficients(w), 0)
	c[0]++ // the columns miss y − x_0
	target := make([]float64, len(c))
	target[0], target[g.terms] = 1, 1
	square := func(c []float64) float64 {
		v := mat.NewVecDense(len(c), c)
		return mat.Inner(v, g.sums, v)
	}
	if gain := math.Sqrt(square(target) / square(c)); gain > 0 && !math.IsInf(gain, 1) {
		return gain
	}
	return 1
}

// coefficients returns the coefficients of the columns for weights w, in a combination that approximates y − x_0.
func (g *Gram) coefficients(w []float64) []float64 {
	c := make([]float64, len(w), len(w)+1)
	carry := 0.0
	for k := len(w) - 2; k >= 2; k -= 2 {
		c[k+1] = -w[k+1]
		c[k] = w[k] - c[k+1] + carry
		carry = c[k]
	}
	c[1] = w[1] + carry
	c[0] = w[0] + c[1] - 1
	return c
}

// weights returns the weights for coefficients of the columns.
func weights(c []float64) []float64 {
	w := make([]float64, len(c))
	w[0], w[1] = c[0]-c[1], c[1]
	for k := 2; k+1 < len(c); k += 2 {
		w[before(k)] -= c[k]
		w[k], w[k+1] = c[k]+c[k+1], -c[k+1]
	}
	return w
}

// before returns the position of the evaluation before the one at k: D_0 is at 1, D_1 at 2, D_2 at 4.
func before(k int) int {
	if k == 2 {
		return 1
	}
	return k - 2
}
