package solver

import "math"

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

// heunStart makes the first step of a multistep method Heun's. An Euler step has an error of second order, so a method
// that begins with one is of global order 2 at most; after Heun's step it may be of order 3. This costs no evaluation:
// the second evaluation, at Euler's point, replaces that of the first node in the history, and the next combination
// corrects the step before it takes its own,
//
//	x ← x − ½ ΔU_j (flow′ − flow),   or   x ← x + ½ (1 − U′/U) (D′ − D)
//
// if the history has denoised images.
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
