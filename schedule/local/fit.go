package local

import (
	"gonum.org/v1/gonum/mat"
)

// Fit returns the weights of a combination that brings it closest to targets,
//
//	min_w  Σ_n (y_n − Σ_k w_k z_kn)² + ridge Σ_k |z′_k|² (c_k − c⁰_k)²,
//
// near the weights that are there. z holds, newest first, the running state and then of every pair an evaluation and
// its state: x_0, D_0, D_1, x_1, D_2, x_2, …; weights are in the same order. They are nearly alike where there is
// little noise, so what is held near is not w but the coefficients c of x_0, D_0 − x_0, D_1 − D_0, D_1 − x_1, …, each
// in units of its own size |z′_k|.
//
//	z     [2K][N]
//	y     [N]
//	near  [2K]
//
// Where the normal equations have no solution it returns near.
func Fit(z [][]float64, y, near []float64, ridge float64) []float64 {
	n := len(z)
	features, start := differences(z), coefficients(near)
	normal, rhs := mat.NewSymDense(n, nil), mat.NewVecDense(n, nil)
	rest := make([]float64, len(y))
	copy(rest, y)
	for k, f := range features {
		for i, v := range f {
			rest[i] -= start[k] * v
		}
	}
	for a := range n {
		rhs.SetVec(a, dot(features[a], rest))
		for b := range a + 1 {
			normal.SetSym(a, b, dot(features[a], features[b]))
		}
	}
	for a := range n {
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

// differences returns x_0, D_0 − x_0, D_1 − D_0, D_1 − x_1, D_2 − D_1, …
func differences(z [][]float64) [][]float64 {
	out := [][]float64{z[0], minus(z[1], z[0])}
	for k := 2; k+1 < len(z); k += 2 {
		out = append(out, minus(z[k], z[before(k)]), minus(z[k], z[k+1]))
	}
	return out
}

// coefficients turns weights of x_0, D_0, D_1, x_1, … to those of differences.
func coefficients(w []float64) []float64 {
	c := make([]float64, len(w))
	carry := 0.0
	for k := len(w) - 2; k >= 2; k -= 2 {
		c[k+1] = -w[k+1]
		c[k] = w[k] - c[k+1] + carry
		carry = c[k]
	}
	c[1] = w[1] + carry
	c[0] = w[0] + c[1]
	return c
}

// weights is the inverse of coefficients.
func weights(c []float64) []float64 {
	w := make([]float64, len(c))
	w[0], w[1] = c[0]-c[1], c[1]
	for k := 2; k+1 < len(c); k += 2 {
		w[before(k)] -= c[k]
		w[k], w[k+1] = c[k]+c[k+1], -c[k+1]
	}
	return w
}

// before returns where the evaluation before that at k is: D_0 is at 1, D_1 at 2, D_2 at 4.
func before(k int) int {
	if k == 2 {
		return 1
	}
	return k - 2
}

func minus(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i, v := range a {
		out[i] = v - b[i]
	}
	return out
}

func dot(a, b []float64) (sum float64) {
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}
