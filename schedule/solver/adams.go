package solver

import (
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/integrate/quad"
)

// multistep returns the links of a multistep method: step i has the weight alpha of x and beta of the last evaluations.
func (c *clock) multistep(step func(i int) (alpha float64, beta []float64)) []link {
	out := make([]link, c.linkCount())
	for i := range out {
		alpha, beta := step(i)
		out[i] = c.nodeLink(i, alpha, beta)
	}
	return out
}

// adams returns the links of an Adams method of order p, which continues the flow by the polynomial through its last
// values at some nodes. integral returns the integral of f against U_j over step i:
//
//	x ← x + Σ_j Σ_i β_{ji} P_j E_i,   β_{ji} = −∫ ℓ_i dU_j over the step.
func (c *clock) adams(p int, nodes []float64, integral func(i int, f func(float64) float64) float64) []link {
	return c.multistep(func(i int) (alpha float64, beta []float64) {
		last := slices.Clone(nodes[i+1-c.order(i, p) : i+1])
		slices.Reverse(last) // the newest first
		beta = make([]float64, len(last))
		for k := range beta {
			beta[k] = -integral(i, func(v float64) float64 { return lagrange(last, k, v) })
		}
		return 1, beta
	})
}

// adamsBashforth is the Adams method of order 1–3 with nodes in schedule time t. A learned schedule is one on which the
// flow changes evenly in t, hence the nodes.
func adamsBashforth(s Settings, c *clock) []link {
	tau, logg := c.path.Knots()
	return c.adams(s.Order, c.t, func(i int, f func(float64) float64) float64 {
		return stieltjes(tau, logg, c.t[i], c.t[i+1], f)
	})
}

var gauss16 = gaussLegendre(16)

// stieltjes returns ∫_a^b f dU with U = √g of the path through the knots. On a knot interval of slope s = d ln g/dt, dU
// = ½ s U dt. Panels span at most two e-folds of U, on which the rule is exact to rounding if f is a low polynomial.
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
// On a grid that is not uniform in U it is of second order only, and still good. ipndmVariable has the weights of the
// actual steps.
func ipndm(s Settings, c *clock) []link {
	return c.multistep(func(i int) (alpha float64, beta []float64) {
		for _, w := range fixedWeights[c.order(i, s.Order)] {
			beta = append(beta, (c.u[i]-c.u[i+1])*w)
		}
		return 1, beta
	})
}

var gauss4 = gaussLegendre(4)

// ipndmVariable is the Adams method of order 1–4 with nodes in U: ipndm with the weights of the actual steps.
func ipndmVariable(s Settings, c *clock) []link {
	return c.adams(s.Order, c.u, func(i int, f func(float64) float64) float64 {
		return gauss4.integrate(c.u[i], c.u[i+1], f)
	})
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

// deis is the exponential integrator DEIS-tAB of order (degree) 1–3 (Zhang and Chen, arXiv:2204.13902): the Adams
// method with nodes in variance-preserving time. A polynomial of degree p needs p + 1 evaluations.
func deis(s Settings, c *clock) []link {
	times := make([]float64, len(c.u))
	for i, u := range c.u {
		times[i] = vpTime(u)
	}
	return c.adams(s.Order+1, times, func(i int, f func(float64) float64) float64 {
		// The integrand spans e-folds of u: integrate u dλ, λ = ln u.
		return gauss16.panels(math.Log(c.u[i]), math.Log(c.u[i+1]), 0.5, func(l float64) float64 {
			u := math.Exp(l)
			return u * f(vpTime(u))
		})
	})
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
