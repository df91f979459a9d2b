package solver

import (
	"math"
	"slices"
)

// BH1 is the variant of UniPC with B(h) = −h; the other, "bh2", has B(h) = e^{−h} − 1.
const BH1 = "bh1"

// unipc is the unified predictor–corrector of order 1–3 (Zhao et al., arXiv:2302.04867), multistep, data prediction,
// each subspace on its own clock λ = −ln U. With m_k the denoised images of the last nodes, h = λ_next − λ, r_k =
// (λ_{−k} − λ)/h and d_k = (m_k − m_0)/r_k,
//
//	base      = U′/U x − (e^{−h} − 1) m_0
//	predicted = base − B Σ_k ρ_k d_k
//	corrected = base − B (Σ_k ρ′_k d_k + ρ′_p (m′ − m_0))
//
// where m′ is the image at the predicted point. The next step uses it too, so that correcting costs nothing. Every step
// except the last is corrected.
//
// When m′ becomes known, the running x is the predicted point. So a link corrects the step before it, which only adds
// images, and predicts the next.
func unipc(s Settings, c *clock) []link {
	var last unipcStep
	return c.multistep(func(i int) (alpha float64, beta []float64) {
		step := newUnipcStep(s, c, i)
		alpha = c.u[i+1] / c.u[i]
		beta = make([]float64, max(len(step.predict), len(last.correct)))
		copy(beta, step.predict)
		for k, v := range last.correct {
			beta[k] += alpha * v
		}
		last = step
		return alpha, beta
	})
}

// unipcStep holds the weights of one step.
type unipcStep struct {
	predict []float64 // of m_0, m_1, … in predicted − U′/U x
	correct []float64 // of m′, m_0, m_1, … in corrected − predicted
}

func newUnipcStep(s Settings, c *clock, i int) unipcStep {
	p := c.finalOrder(s, i, s.Order)
	hh := math.Log(c.u[i+1] / c.u[i]) // −h
	e := math.Expm1(hh)
	b := e
	if s.Variant == BH1 {
		b = hh
	}
	r := make([]float64, p) // r_1 … r_{p−1}, 1
	for k := 1; k < p; k++ {
		r[k-1] = math.Log(c.u[i-k]/c.u[i]) / hh
	}
	r[p-1] = 1

	// The conditions of order q = 1 … p: Σ_k r_k^{q−1} ρ_k = φ_q q!/B.
	rhs := make([]float64, p)
	phi, factorial := e/hh-1, 1.0
	for q := range rhs {
		rhs[q] = phi * factorial / b
		factorial *= float64(q + 2)
		phi = phi/hh - 1/factorial
	}
	predictor, corrector := []float64(nil), []float64{0.5}
	switch {
	case p == 2:
		predictor = []float64{0.5}
	case p > 2:
		predictor = vandermonde(r[:p-1], rhs[:p-1])
	}
	if p > 1 {
		corrector = vandermonde(r, rhs)
	}

	st := unipcStep{predict: make([]float64, p), correct: make([]float64, p+1)}
	st.predict[0] = -e
	for k, rho := range predictor {
		w := b * rho / r[k]
		st.predict[k+1] -= w
		st.predict[0] += w
		st.correct[k+2] += w // what the predictor added is taken back
		st.correct[1] -= w
	}
	for k, rho := range corrector[:p-1] {
		w := b * rho / r[k]
		st.correct[k+2] -= w
		st.correct[1] += w
	}
	st.correct[0] = -b * corrector[p-1]
	st.correct[1] += b * corrector[p-1]
	return st
}

// vandermonde solves Σ_k r_k^q x_k = b_q, q = 0 … n−1, for distinct r by Newton's divided differences (Björck and
// Pereyra, Solution of Vandermonde systems of equations, 1970), which is exact to rounding for r of any size. Equal r
// give numbers that are not finite.
func vandermonde(r, b []float64) []float64 {
	x := slices.Clone(b)
	n := len(x)
	for k := range n - 1 {
		for i := n - 1; i > k; i-- {
			x[i] -= r[k] * x[i-1]
		}
	}
	for k := n - 2; k >= 0; k-- {
		for i := k + 1; i < n; i++ {
			x[i] /= r[i] - r[i-k-1]
		}
		for i := k; i < n-1; i++ {
			x[i] -= x[i+1]
		}
	}
	return x
}
