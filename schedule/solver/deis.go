package solver

import "math"

// The variance-preserving time of DEIS: σ(t) = 0.002 at t = 0.001 and 80 at t = 1,
// with ln(1 + σ²) = ½ β_d t² + β_min t.
const (
	vpSigmaMin, vpSigmaMax = 0.002, 80
	vpTimeMin              = 1e-3
)

var vpBetaD, vpBetaMin = vpBetas()

func vpBetas() (d, low float64) {
	a, b := math.Log1p(vpSigmaMin*vpSigmaMin), math.Log1p(vpSigmaMax*vpSigmaMax)
	d = 2 * (a/vpTimeMin - b) / (vpTimeMin - 1)
	return d, b - d/2
}

// vpTime returns the variance-preserving time of a noise level.
func vpTime(sigma float64) float64 {
	return (math.Sqrt(vpBetaMin*vpBetaMin+2*vpBetaD*math.Log1p(sigma*sigma)) - vpBetaMin) / vpBetaD
}

// deis is the exponential integrator DEIS-tAB of order (degree) 1–3 (Zhang and Chen,
// arXiv:2204.13902) on each subspace's own clock: the flow is continued by the
// polynomial through its last values as a function of variance-preserving time s,
//
//	β_{ji} = −∫ ℓ_i(s(u)) du over the step.
//
// A polynomial of degree p needs p + 1 evaluations.
func deis(s Settings, c *clock) []link {
	times := make([]float64, len(c.u))
	for i, u := range c.u {
		times[i] = vpTime(u)
	}
	out := make([]link, c.steps())
	for i := range out {
		nodes := recent(times, i, c.order(i, s.Order+1))
		beta := make([]float64, len(nodes))
		for k := range beta {
			// The integrand spans e-folds of u: integrate u dλ, λ = ln u.
			beta[k] = -gauss16.panels(math.Log(c.u[i]), math.Log(c.u[i+1]), 0.5, func(l float64) float64 {
				u := math.Exp(l)
				return u * lagrange(nodes, k, vpTime(u))
			})
		}
		out[i] = c.nodeLink(i, 1, beta)
	}
	return out
}
