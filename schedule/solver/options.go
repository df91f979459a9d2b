package solver

import (
	"math"
	"slices"
)

// analyticFirstStep removes the first evaluation of one subspace's links and returns the factor by which the initial x
// grows in its place. At the highest noise level the flow tends to that of unit-variance data,
//
//	E_first = γ x,  γ = −1/√(1 + g)   (or γ = 1 − √g/√(1 + g) where E is a denoised image),
//
// so the first combination only scales x. Later ones may still ask for E_first; it is followed as a combination p x +
// Σ_i q_i E_i of the running x and the evaluations since: after x′ = α x + Σ β_i E_i it reads p/α x′ + Σ (q_i − p/α
// β_i) E_i.
func analyticFirstStep(links []link, data bool) (rest []link, factor float64) {
	first := links[0]
	gamma := -1 / math.Sqrt(1+first.g)
	if data {
		gamma = 1 + math.Sqrt(first.g)*gamma
	}
	factor = first.alpha + first.beta[0]*gamma
	p, q := gamma/factor, []float64{} // q newest first
	for i, l := range links[1:] {
		q = append([]float64{0}, q...) // this link evaluates too
		beta := slices.Clone(l.beta)
		if made := i + 1; len(beta) > made { // E_first is the oldest of made+1
			w := beta[made]
			l.alpha += w * p
			beta = beta[:made]
			for k := range beta {
				beta[k] += w * q[k]
			}
		}
		l.beta = beta
		rest = append(rest, l)
		p /= l.alpha
		for k, b := range beta {
			q[k] -= p * b
		}
	}
	return rest, factor
}

// denoiseToZero makes the last combination return the denoised image of the last evaluation, x + √g E.
func denoiseToZero(links []link, data bool) {
	l := &links[len(links)-1]
	if data {
		l.alpha, l.beta = 0, []float64{1}
		return
	}
	l.alpha, l.beta = 1, []float64{math.Sqrt(l.g)}
}

// The first steps of multistep solvers.
const (
	WarmupEuler = "euler"
	WarmupHeun  = "heun"
)

// heunStart makes the first step of a multistep method's links Heun's. An Euler step has an error of its square, so
// that a method that begins with one is of global order 2 at most; Heun's begins a method of order 3. It costs nothing:
// the second evaluation, at Euler's point, stays in the history as that of the first node, and the step is corrected by
// the combination that follows it, before that takes its own,
//
//	x ← x − ½ ΔU_j (flow′ − flow),   or   x ← x + ½ (1 − U′/U) (D′ − D)
//
// where denoised images are kept.
func heunStart(links []link, c *clock, data bool) {
	if len(links) < 2 {
		return
	}
	half := (c.u[0] - c.u[1]) / 2
	if data {
		half /= c.u[0]
	}
	l := &links[1]
	if len(l.beta) < 2 {
		l.beta = append(l.beta, 0)
	}
	l.beta[0] += l.alpha * half
	l.beta[1] -= l.alpha * half
}
