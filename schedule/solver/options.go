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
