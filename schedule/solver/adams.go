package solver

import (
	"math"
	"sort"

	"gonum.org/v1/gonum/integrate/quad"
)

// adamsBashforth is the multistep method of order 1–3 in U with nodes in t: the flow is continued by the polynomial
// through its last values as a function of schedule time and integrated against the subspace's own clock,
//
//	x ← x + Σ_j Σ_i β_{ji} P_j E_i,   β_{ji} = −∫ ℓ_i(t) dU_j(t) over the step.
//
// A learned schedule is one on which the flow changes evenly in t, hence the nodes. Between knots U is an exponential;
// the integral is split at knots.
func adamsBashforth(s Settings, c *clock) []link {
	tau, logg := c.path.Knots()
	out := make([]link, c.wanted())
	for i := range out {
		p := c.order(i, s.Order)
		nodes := recent(c.t, i, p)
		beta := make([]float64, p)
		for k := range beta {
			beta[k] = -stieltjes(tau, logg, c.t[i], c.t[i+1], func(t float64) float64 { return lagrange(nodes, k, t) })
		}
		out[i] = c.nodeLink(i, 1, beta)
	}
	return out
}

var gauss16 = gaussLegendre(16)

// stieltjes returns ∫_a^b f dU with U = √g of the path through the knots. On a knot interval of slope s = d ln g/dt, dU
// = ½ s U dt; panels span two e-folds of U at most, on which the rule is exact to rounding for f a low polynomial.
func stieltjes(tau, logg []float64, a, b float64, f func(float64) float64) float64 {
	lo, hi := min(a, b), max(a, b)
	var sum float64
	for k := max(1, sort.SearchFloat64s(tau, lo)); k < len(tau) && tau[k-1] < hi; k++ {
		half := (logg[k] - logg[k-1]) / (tau[k] - tau[k-1]) / 2
		from, to := max(lo, tau[k-1]), min(hi, tau[k])
		sum += gauss16.panels(from, to, 2/half, func(t float64) float64 {
			return f(t) * half * math.Exp(logg[k-1]/2+half*(t-tau[k-1]))
		})
	}
	if a > b {
		return -sum
	}
	return sum
}

// fixedWeights are the Adams–Bashforth weights of uniform steps, by order.
var fixedWeights = [...][]float64{
	1: {1},
	2: {3. / 2, -1. / 2},
	3: {23. / 12, -16. / 12, 5. / 12},
	4: {55. / 24, -59. / 24, 37. / 24, -9. / 24},
}

// ipndm is the improved pseudo-numerical method of order 1–4 (Zhang and Chen, arXiv:2204.13902): Adams–Bashforth in U
// with the weights of uniform steps,
//
//	x ← x − Σ_j ΔU_j P_j Σ_i w_i E_i.
//
// On a grid that is not uniform in U it is of second order only, which does not keep it from being good; ipndmVariable
// has the weights of the actual steps.
func ipndm(s Settings, c *clock) []link {
	out := make([]link, c.wanted())
	for i := range out {
		w := fixedWeights[c.order(i, s.Order)]
		beta := make([]float64, len(w))
		for k := range beta {
			beta[k] = (c.u[i] - c.u[i+1]) * w[k]
		}
		out[i] = c.nodeLink(i, 1, beta)
	}
	return out
}

var gauss4 = gaussLegendre(4)

// ipndmVariable is ipndm with the Adams–Bashforth weights of the actual steps, nodes in U: β_{ji} = −∫ ℓ_i(u) du over
// the step.
func ipndmVariable(s Settings, c *clock) []link {
	out := make([]link, c.wanted())
	for i := range out {
		p := c.order(i, s.Order)
		nodes := recent(c.u, i, p)
		beta := make([]float64, p)
		for k := range beta {
			beta[k] = -gauss4.integrate(c.u[i], c.u[i+1], func(u float64) float64 { return lagrange(nodes, k, u) })
		}
		out[i] = c.nodeLink(i, 1, beta)
	}
	return out
}

// The variance-preserving time of DEIS: σ(t) = 0.002 at t = 0.001 and 80 at t = 1, with ln(1 + σ²) = ½ β_d t² + β_min
// t.
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

// deis is the exponential integrator DEIS-tAB of order (degree) 1–3 (Zhang and Chen, arXiv:2204.13902) on each
// subspace's own clock: the flow is continued by the polynomial through its last values as a function of
// variance-preserving time s,
//
//	β_{ji} = −∫ ℓ_i(s(u)) du over the step.
//
// A polynomial of degree p needs p + 1 evaluations.
func deis(s Settings, c *clock) []link {
	times := make([]float64, len(c.u))
	for i, u := range c.u {
		times[i] = vpTime(u)
	}
	out := make([]link, c.wanted())
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

// rule is a Gauss–Legendre rule on [−1, 1].
type rule struct{ x, w []float64 }

func gaussLegendre(n int) rule {
	r := rule{make([]float64, n), make([]float64, n)}
	quad.Legendre{}.FixedLocations(r.x, r.w, -1, 1)
	return r
}

// integrate returns ∫_a^b f. With n points it is exact for polynomials of degree 2n−1.
func (r rule) integrate(a, b float64, f func(float64) float64) float64 {
	var sum float64
	for i, x := range r.x {
		sum += r.w[i] * f((a+b)/2+x*(b-a)/2)
	}
	return sum * (b - a) / 2
}

// panels returns ∫_a^b f over panels of equal width at most the given one.
func (r rule) panels(a, b, width float64, f func(float64) float64) float64 {
	n := max(1, int(math.Ceil(math.Abs(b-a)/width)))
	var sum float64
	for i := range n {
		sum += r.integrate(a+(b-a)*float64(i)/float64(n), a+(b-a)*float64(i+1)/float64(n), f)
	}
	return sum
}

// lagrange returns ℓ_k(t), the polynomial that is 1 at nodes[k] and 0 at the others.
func lagrange(nodes []float64, k int, t float64) float64 {
	l := 1.0
	for m, n := range nodes {
		if m != k {
			l *= (t - n) / (nodes[k] - n)
		}
	}
	return l
}
