package search_test

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/internal/search"
	"github.com/anisoflight/anisoflight/internal/testing/ensembletest"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// Of normal data the squared error of paired samples is the squared W₂ distance of a linear sampler, which can be
// minimised exactly. A learned sampler comes within .02 of that minimum, and not below it. The error of the converged
// samples that it learns from is .015 of it.
func TestLearnedReachesTheExactMinimum(t *testing.T) {
	const nfe = 2
	m := ensembletest.Smooth(8, 1)
	variances := variancesOf(m)
	f, err := search.Learned(t.Context(), m, paired(nfe), 64)
	if err != nil {
		t.Fatal(err)
	}
	var theta []float64
	for i := range nfe {
		theta = append(theta, math.Log(f.Sigma[i]), f.Alpha[i][0], f.Beta[i][0][0])
		if i > 0 {
			theta = append(theta, f.Beta[i][0][2:]...)
		}
	}
	got := squares(exactMisses(theta, variances))
	least := math.Inf(1)
	for _, from := range [][]float64{theta, startOn(80, 3), startOn(80, 1)} {
		least = min(least, leastSquares(from, variances))
	}
	t.Logf("learned %.6g, least %.6g, Euler %.6g", got, least, squares(exactMisses(startOn(80, 3), variances)))
	if got > 1.02*least || got < 0.9999*least {
		t.Errorf("the learned sampler has a squared W₂ of %v, the least is %v", got, least)
	}
}

// Of a guided network the guidance of each evaluation is learned, too, and lowers the error to converged samples with
// the guidance asked for, on latents that nothing was learned from.
func TestLearnedGuidanceLowersTheError(t *testing.T) {
	m := ensembletest.Smooth(4, 2)
	m.Guide, m.Scale = ensembletest.Smooth(4, 3), 4
	var errs [2]float64
	for i, learn := range []bool{false, true} {
		set := paired(3)
		set.LearnGuidance = learn
		k, err := search.Learned(t.Context(), m, set, 64)
		if err != nil {
			t.Fatal(err)
		}
		if learn != (k.Guidance != nil) {
			t.Fatalf("guidance %v", k.Guidance)
		}
		for _, r := range k.Guidance {
			if !(r >= 0 && r <= 2) {
				t.Errorf("guidance %v outside 0 … 2", k.Guidance)
			}
		}
		errs[i] = missesOf(t, m, k)
	}
	t.Logf("%.4g with one guidance, %.4g with learned ones", errs[0], errs[1])
	if !(errs[1] < 0.9*errs[0]) {
		t.Errorf("learned guidance has the error %v, one guidance %v", errs[1], errs[0])
	}
}

// A learned level is never above the highest, nor below the lowest: no grid has such a level.
func TestLevelsAreWithinThoseOfTheNetwork(t *testing.T) {
	for sigma, want := range map[float64]float64{80.004: 80, 80: 80, 5: 5, 0.002: 0.002, 0.0019999: 0.002} {
		if got, ok := search.LevelWithin(sigma, 0.002, 80); got != want || !ok {
			t.Errorf("level %v became %v (%v), want %v", sigma, got, ok, want)
		}
	}
	for _, sigma := range []float64{81, 0.0019, math.NaN(), math.Inf(1)} {
		if _, ok := search.LevelWithin(sigma, 0.002, 80); ok {
			t.Errorf("level %v passed", sigma)
		}
	}
}

// missesOf returns the mean squared error of 64 samples by coefficients to converged samples from the same latents.
func missesOf(t *testing.T, m *ensembletest.Mixture, k solver.Coefficients) float64 {
	t.Helper()
	path, err := schedule.EDM(6400, 1e-9)
	if err != nil {
		t.Fatal(err)
	}
	own, err := k.Plan(path)
	if err != nil {
		t.Fatal(err)
	}
	fine, err := solver.New(solver.Settings{Solver: "ipndm", NFE: 64, Grid: solver.Grid{Kind: solver.GridPolynomial}},
		path, 0)
	if err != nil {
		t.Fatal(err)
	}
	var x [2]sampler.Samples
	for i, p := range []*solver.Plan{own, fine} {
		trajectories := sampler.Trajectories{Plan: p, Seed: 1 << 40, Labels: slices.Repeat([]int32{-1}, 64)}
		if err := m.Follow(t.Context(), trajectories, &x[i]); err != nil {
			t.Fatal(err)
		}
	}
	var sum float64
	for i, v := range x[0] {
		sum += float64(v-x[1][i]) * float64(v-x[1][i]) / 64
	}
	return sum
}

// leastSquares returns the least squared W₂ that the method of Levenberg and Marquardt finds. The first level is
// given.
func leastSquares(theta, variances []float64) float64 {
	first, x := theta[:1], theta[1:]
	misses := func(x []float64) []float64 { return exactMisses(slices.Concat(first, x), variances) }
	n, damping := len(x), 1e-3
	for range 400 {
		slopes := mat.NewDense(len(variances), n, nil)
		fd.Jacobian(slopes, func(y, x []float64) { copy(y, misses(x)) }, x, &fd.JacobianSettings{Formula: fd.Central})
		var normal mat.Dense
		var rhs, step mat.VecDense
		normal.Mul(slopes.T(), slopes)
		rhs.MulVec(slopes.T(), mat.NewVecDense(len(variances), misses(x)))
		for p := range n {
			normal.Set(p, p, normal.At(p, p)*(1+damping))
		}
		if damping *= 4; step.SolveVec(&normal, &rhs) != nil {
			continue
		}
		changed := make([]float64, n)
		floats.SubTo(changed, x, step.RawVector().Data)
		if squares(misses(changed)) < squares(misses(x)) {
			x, damping = changed, damping/12
		}
	}
	return squares(misses(x))
}

// variancesOf returns those of a mixture of one law, by frequency.
func variancesOf(m *ensembletest.Mixture) []float64 {
	d := m.Height * m.Width
	transform := basis.NewFrequencies(m.Height, m.Width, 1, nil)
	out := make([]float64, d)
	for f := range out {
		unit := make([]float64, d)
		unit[f] = 1
		transform.Inverse(unit, unit)
		for i, a := range unit {
			for j, b := range unit {
				out[f] += a * b * m.Covs[0][i*d+j]
			}
		}
	}
	return out
}

func squares(values []float64) (sum float64) {
	for _, v := range values {
		sum += v * v
	}
	return sum
}

// exactMisses are m_f − √λ_f of the sampler that takes a unit normal ξ_f to m_f ξ_f. Their sum of squares is the
// squared W₂ distance.
func exactMisses(theta, variances []float64) (misses []float64) {
	for _, v := range variances {
		x, before, denoisedBefore := math.Exp(theta[0]), 0.0, 0.0
		for at := 0; at < len(theta); {
			denoised := v / (v + math.Exp(2*theta[at])) * x
			next := theta[at+1]*x + theta[at+2]*denoised
			if at += 3; at > 3 {
				next += theta[at]*denoisedBefore + theta[at+1]*before
				at += 2
			}
			before, denoisedBefore, x = x, denoised, next
		}
		misses = append(misses, x-math.Sqrt(v))
	}
	return misses
}

// startOn returns the numbers of Euler's method on three levels.
func startOn(sigma ...float64) (theta []float64) {
	for i, s := range sigma {
		next := 0.0
		if i+1 < len(sigma) {
			next = sigma[i+1]
		}
		theta = append(theta, math.Log(s), next/s, 1-next/s)
		if i > 0 {
			theta = append(theta, 0, 0)
		}
	}
	return theta
}
