package gaussian

import (
	"math"
	"testing"

	"github.com/anisoflight/anisoflight/schedule/solver"
)

// TestLeastSquaresFindsKnownMinima: Rosenbrock's valley, and Powell's singular function, whose Jacobian at the minimum
// has no inverse (Moré, Garbow and Hillstrom, Testing unconstrained optimization software, 1981, problems 1 and 13).
func TestLeastSquaresFindsKnownMinima(t *testing.T) {
	rosenbrock := leastSquares{rows: 2, residual: func(x, r []float64) bool {
		r[0], r[1] = 10*(x[1]-x[0]*x[0]), 1-x[0]
		return true
	}}
	x, sum := rosenbrock.minimize([]float64{-1.2, 1})
	if sum > 1e-12 || math.Abs(x[0]-1) > 1e-6 || math.Abs(x[1]-1) > 1e-6 {
		t.Errorf("Rosenbrock: %v at %v, want 0 at (1, 1)", sum, x)
	}
	powell := leastSquares{rows: 4, residual: func(x, r []float64) bool {
		r[0], r[1] = x[0]+10*x[1], math.Sqrt(5)*(x[2]-x[3])
		r[2], r[3] = (x[1]-2*x[2])*(x[1]-2*x[2]), math.Sqrt(10)*(x[0]-x[3])*(x[0]-x[3])
		return true
	}}
	if x, sum := powell.minimize([]float64{3, -1, 0, 1}); sum > 1e-12 {
		t.Errorf("Powell: %v at %v, want 0", sum, x)
	}
}

// TestLeastSquaresStaysWhereAllowed: a forbidden region is not entered, and a parameter without effect does no harm.
func TestLeastSquaresStaysWhereAllowed(t *testing.T) {
	p := leastSquares{rows: 1, residual: func(x, r []float64) bool {
		r[0] = x[0] - 3
		return x[0] < 2
	}}
	x, sum := p.minimize([]float64{0, 7})
	if !(x[0] < 2) || x[1] != 7 || sum > 1.1 {
		t.Errorf("stopped at %v with %v, want just below 2", x, sum)
	}
}

// TestJacobianOfTheObjective: the gradient of the whole objective, ties included, by differences of fourth order.
func TestJacobianOfTheObjective(t *testing.T) {
	s := patches(t)
	parts, err := s.Bands(split(t, 2))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"dpmpp2m", "ipndm", "ab"} {
		o, err := newObjective(s, Settings{Sampler: solver.Settings{Solver: name, Steps: 4}}, networkError)
		if err != nil {
			t.Fatal(err)
		}
		o.bands, o.tie = [][]group{groupDirections(parts[0]), groupDirections(parts[1])}, 0.1
		p := leastSquares{rows: o.rows(), residual: o.residual}
		theta := []float64{-1.2, -0.9, -0.8, -1.1, -1.3, -0.7}
		r := make([]float64, p.rows)
		if !o.residual(theta, r) {
			t.Fatal("the start is not allowed")
		}
		jac := p.jacobian(theta)
		for i := range theta {
			var gradient float64
			for k, v := range r {
				gradient += 2 * v * jac.At(k, i)
			}
			const h = 1e-3
			value := func(step float64) float64 {
				at := append([]float64(nil), theta...)
				at[i] += step
				out := make([]float64, p.rows)
				o.residual(at, out)
				return square(out)
			}
			want := (8*(value(h)-value(-h)) - (value(2*h) - value(-2*h))) / (12 * h)
			if math.Abs(gradient-want) > 1e-6*max(1e-3, math.Abs(want)) {
				t.Errorf("%s: ∂/∂θ_%d is %v, want %v", name, i, gradient, want)
			}
		}
	}
}
