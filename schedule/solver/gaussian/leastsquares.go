package gaussian

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// leastSquares minimises a sum of squares.
type leastSquares struct {
	rows int
	// residual writes r(θ) to dst, of length rows, and reports whether θ is allowed.
	residual func(theta, dst []float64) bool
	// stop, which may be nil, is called before each iteration and ends the search at the best so far.
	stop func() bool
}

const (
	maxIterations = 300
	// differenceStep balances, in the log-increments, the error of a central difference, step², with rounding, 1e-16/step.
	differenceStep = 1e-5
	// flat is the relative gain of the last iteration.
	flat = 1e-4
	// stiff is the damping at which no step gains anything.
	stiff = 1e12
)

// minimize is the method of Levenberg and Marquardt with Nielsen's damping (Madsen, Nielsen and Tingleff, Methods for
// non-linear least squares problems, 2004). It returns the best θ and its sum of squares, which is at most that of
// start.
func (p leastSquares) minimize(start []float64) (theta []float64, sum float64) {
	theta = slices.Clone(start)
	r, trial := make([]float64, p.rows), make([]float64, p.rows)
	if !p.residual(theta, r) {
		return theta, math.Inf(1)
	}
	sum = square(r)
	if len(theta) == 0 {
		return theta, sum
	}
	jac := p.jacobian(theta)
	scale := make([]float64, len(theta))
	mu, grow := 1e-3, 2.0
	for i := 0; i < maxIterations && mu < stiff && !(p.stop != nil && p.stop()); i++ {
		next, promised := dampedStep(jac, r, theta, scale, mu)
		gain := math.Inf(-1)
		if promised > 0 && p.residual(next, trial) {
			gain = sum - square(trial)
		}
		if !(gain > 0) {
			mu *= grow
			grow *= 2
			continue
		}
		mu *= max(1./3, 1-math.Pow(2*gain/promised-1, 3))
		grow = 2
		theta, r, trial = next, trial, r
		sum -= gain
		if gain < flat*sum {
			break
		}
		jac = p.jacobian(theta)
	}
	return theta, square(r)
}

// dampedStep returns next = θ + δ with (JᵀJ + μ D) δ = −Jᵀr, and the decrease of the sum of squares that the linear
// model promises; 0 if there is no such step. scale is D, the largest diagonal of JᵀJ so far, which is updated. The
// step comes from a QR decomposition of J over √(μD), which does not square the condition number.
func dampedStep(jac *mat.Dense, r, theta, scale []float64, mu float64) (next []float64, promised float64) {
	rows, n := jac.Dims()
	var most float64
	for i := range scale {
		col := mat.Col(nil, i, jac)
		scale[i] = max(scale[i], square(col))
		most = max(most, scale[i])
	}
	stacked, rhs := mat.NewDense(rows+n, n, nil), mat.NewVecDense(rows+n, nil)
	stacked.Slice(0, rows, 0, n).(*mat.Dense).Copy(jac)
	for i, s := range scale {
		stacked.Set(rows+i, i, math.Sqrt(mu*max(s, 1e-12*most))) // a parameter may have no effect
	}
	for k, v := range r {
		rhs.SetVec(k, -v)
	}
	var qr mat.QR
	var step, model mat.VecDense
	qr.Factorize(stacked)
	if qr.SolveVecTo(&step, false, rhs) != nil {
		return nil, 0
	}
	model.MulVec(jac, &step)
	promised = square(r)
	for k, v := range r {
		promised -= (v + model.AtVec(k)) * (v + model.AtVec(k))
	}
	next = slices.Clone(theta)
	for i := range next {
		next[i] += step.AtVec(i)
	}
	return next, promised
}

// jacobian returns ∂r/∂θ by central differences.
func (p leastSquares) jacobian(theta []float64) *mat.Dense {
	jac := mat.NewDense(p.rows, len(theta), nil)
	up, down := make([]float64, p.rows), make([]float64, p.rows)
	at := slices.Clone(theta)
	for i, v := range theta {
		at[i] = v + differenceStep
		okUp := p.residual(at, up)
		at[i] = v - differenceStep
		okDown := p.residual(at, down)
		at[i] = v
		if !okUp || !okDown {
			continue // at the edge of what is allowed: leave this parameter
		}
		for k := range up {
			jac.Set(k, i, (up[k]-down[k])/(2*differenceStep))
		}
	}
	return jac
}

func square(r []float64) (sum float64) {
	for _, v := range r {
		sum += v * v
	}
	return sum
}
