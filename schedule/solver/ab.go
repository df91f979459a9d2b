package solver

import (
	"math"
	"sort"
)

// adamsBashforth is the multistep method of order 1–3 in U with nodes in t: the flow
// is continued by the polynomial through its last values as a function of schedule
// time and integrated against the subspace's own clock,
//
//	x ← x + Σ_j Σ_i β_{ji} P_j E_i,   β_{ji} = −∫ ℓ_i(t) dU_j(t) over the step.
//
// A learned schedule is one on which the flow changes evenly in t, hence the nodes.
// Between knots U is an exponential; the integral is split at knots.
func adamsBashforth(s Settings, c *clock) []link {
	tau, logg := c.path.Knots()
	out := make([]link, c.steps())
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

// stieltjes returns ∫_a^b f dU with U = √g of the path through the knots. On a knot
// interval of slope s = d ln g/dt, dU = ½ s U dt; panels span two e-folds of U at most,
// on which the rule is exact to rounding for f a low polynomial.
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
