package solver

import (
	"math"

	"gonum.org/v1/gonum/integrate/quad"
)

// rule is a Gauss–Legendre rule on [−1, 1].
type rule struct{ x, w []float64 }

func gaussLegendre(n int) rule {
	r := rule{make([]float64, n), make([]float64, n)}
	quad.Legendre{}.FixedLocations(r.x, r.w, -1, 1)
	return r
}

// integrate returns ∫_a^b f. With n points it is exact for polynomials of degree
// 2n−1.
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
