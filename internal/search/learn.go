package search

import (
	"context"
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/local"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

const (
	// learnRounds is the number of times that all derivatives are measured, beyond once for each start; learnSteps bounds
	// the steps between two of them, and learnTrials what is tried in all.
	learnRounds = 3
	learnTrials = 8
	// disturbance is by how much of its size a state is changed to measure a derivative.
	disturbance = 0.02
	// leastGain is what a step, or a round, must lower the squared error by for another to follow.
	leastGain = 0.03
	// learnStarts is the number of levels that learning starts from.
	learnStarts = 2
	// learnTrajectories is the number of trajectories that a sampler is learned from; as many decide when to end.
	learnTrajectories = 32
)

// A kind of number that is learned of a stage.
const (
	level    = iota // ln σ, at which the network is evaluated
	ofState         // weight of x_i
	ofImage         // weight of D_i
	ofBefore        // weight of D_{i−1}
	ofStateBefore
	numbersOfStage
)

// learned are the numbers of a sampler in which all parts of an image are alike:
//
//	x_{i+1} = α_i x_i + β_i D(x_i, σ_i) + γ_i D(x_{i−1}, σ_{i−1}) + δ_i x_{i−1}.
type learned [][numbersOfStage]float64

// learner brings the samples of few steps as close as it can to converged ones from the same latents,
//
//	min_θ Σ |x_N(θ) − y|²,   θ = (ln σ_i, α_i, β_i, γ_i, δ_i),
//
// through all steps and the network, by the method of Levenberg and Marquardt. Derivatives are differences of samples:
// a number of stage i is changed, and the stages after it are taken again. Between two such rounds each step that is
// tried updates them, by Broyden's formula. The network needs no derivatives, and what it is asked for is to follow
// plans. All sums are products of samples, which stay where it is ([sampler.Columns]).
type learner struct {
	ctx      context.Context
	network  sampler.Ensemble
	from     sampler.Trajectories // without a plan: those that are learned from, and as many that decide when to end
	rows     int                  // of the former
	schedule *schedule.Schedule   // isotropic
	lowest   float64              // level at which the network is evaluated
	columns  sampler.Columns
}

// numbers lists what is learned of n stages, by stage and kind. The first level is that of the start.
func numbers(n int) (out [][2]int) {
	for i := range n {
		for kind := range numbersOfStage {
			if i > 0 || kind == ofState || kind == ofImage {
				out = append(out, [2]int{i, kind})
			}
		}
	}
	return out
}

// learnEvaluations returns the most evaluations of one row that is learned from, from some starts.
func learnEvaluations(n, starts int) int {
	each := (learnTrials + 2) * n
	for _, number := range numbers(n) {
		if each += n - 1 - number[0]; number[1] == level {
			each++
		}
	}
	return (starts + learnRounds) * each
}

// errLevels is the error of levels that do not fall, or are too low.
var errLevels = errors.New("search: levels that cannot be")

// plan returns the plan of numbers.
func (l *learner) plan(of learned) (*solver.Plan, error) {
	sigma := make([]float64, len(of)+1)
	for i, stage := range of {
		if sigma[i] = math.Exp(stage[level]); !(sigma[i] > 0.999*l.lowest) || i > 0 && !(sigma[i] < 0.99*sigma[i-1]) {
			return nil, errLevels
		}
	}
	sigma[len(of)] = lastLevel
	p, err := l.plain(sigma)
	if err != nil {
		return nil, err
	}
	p.States, p.History = true, 4
	for i := range p.Stages {
		st := &p.Stages[i]
		st.Alpha, st.Beta = []float64{of[i][ofState]}, [][]float64{{of[i][ofImage]}}
		if i > 0 {
			st.Beta[0] = append(st.Beta[0], 0, of[i][ofBefore], of[i][ofStateBefore])
		}
	}
	return p, nil
}

// plain returns the plan of DPM-Solver++(2M) on levels.
func (l *learner) plain(sigma []float64) (*solver.Plan, error) {
	return solver.New(solver.Settings{
		Solver: "dpmpp2m", Grid: solver.Grid{Kind: solver.GridSigma, Sigma: sigma},
	}, l.schedule, 0)
}

// start returns the numbers of DPM-Solver++(2M) on levels.
func (l *learner) start(sigma []float64) (learned, error) {
	p, err := l.plain(sigma)
	if err != nil {
		return nil, err
	}
	out := make(learned, len(p.Stages))
	for i, st := range p.Stages {
		out[i][level], out[i][ofState], out[i][ofImage] = math.Log(sigma[i]), st.Alpha[0], st.Beta[0][0]
		if len(st.Beta[0]) > 1 {
			out[i][ofBefore] = st.Beta[0][1]
		}
	}
	return out, nil
}

// starts returns those on EDM's levels, and on those between which n steps by least squares miss the trajectories
// least.
func (l *learner) starts(known *trajectories, fine []float64, n int) (out []learned) {
	levels := [][]float64{levelsBetween(fine[0], fine[fineSteps-1], 7, n)}
	if nodes := known.nodes(n, 1); nodes != nil {
		var sigma []float64
		for _, k := range nodes {
			sigma = append(sigma, fine[k])
		}
		levels = append(levels, sigma)
	}
	for _, sigma := range levels {
		from, err := l.start(sigma)
		if err == nil {
			_, err = l.plan(from)
		}
		if err == nil {
			out = append(out, from)
		}
	}
	return out
}

// follow makes the samples of numbers column k, and adds its products to those of the columns before.
func (l *learner) follow(of learned, k int, products *mat.SymDense) (*mat.SymDense, error) {
	p, err := l.plan(of)
	if err != nil {
		return nil, err
	}
	t := l.from
	t.Plan, t.Labels = p, t.Labels[:l.rows]
	column := &sampler.Column{Of: &l.columns, K: k}
	if err := l.network.Follow(l.ctx, t, column); err != nil {
		return nil, err
	}
	grown := mat.NewSymDense(k+2, nil)
	grown.SetSym(0, 0, column.Sums[0])
	for i := 0; k > 0 && i <= k; i++ {
		for j := range i + 1 {
			grown.SetSym(i, j, products.At(i, j))
		}
	}
	for i, v := range column.Sums[1:] {
		grown.SetSym(k+1, i, v)
	}
	return grown, nil
}

// held returns the mean squared error of the rows that decide when to end.
func (l *learner) held(of learned) (float64, error) {
	p, err := l.plan(of)
	if err != nil {
		return 0, err
	}
	t := l.from
	t.Plan, t.Seed, t.Labels = p, t.Seed+uint64(l.rows), t.Labels[l.rows:]
	errs := &sampler.Errors{States: l.columns.Target, At: l.columns.At, First: l.columns.First + l.rows}
	if err := l.network.Follow(l.ctx, t, errs); err != nil {
		return 0, err
	}
	var sum float64
	for _, v := range errs.Squares {
		sum += v / float64(len(errs.Squares))
	}
	return sum, nil
}

// learn returns the best numbers that are found from some starts. It goes on from the one that is best after a round.
func (l *learner) learn(starts ...learned) (best learned, err error) {
	least := math.Inf(1)
	round := func(from learned) error {
		found, err := l.round(from)
		if err != nil {
			return err
		}
		held, err := l.held(found)
		if err == nil && held < least {
			least, best = held, found
		}
		return err
	}
	for _, from := range starts {
		if err := round(from); err != nil {
			return nil, err
		}
	}
	if best == nil {
		return nil, ErrNotFinite
	}
	for range learnRounds {
		before := least
		if err := round(best); err != nil {
			return nil, err
		}
		if least > (1-leastGain)*before {
			break
		}
	}
	return best, nil
}

// round measures all derivatives at numbers, and takes steps until they gain no more.
func (l *learner) round(from learned) (learned, error) {
	at := slices.Clone(from)
	products, err := l.follow(at, 0, nil)
	if err != nil {
		return nil, err
	}
	list := numbers(len(at))
	n := len(list)
	size := func(i int) float64 { // of state i, of data of deviation ½
		if i == len(at) {
			return math.Hypot(0.5, lastLevel)
		}
		return math.Hypot(0.5, math.Exp(at[i][level]))
	}
	// Vectors are combinations of the target, 0, and the columns, 1, …: derivatives in its columns, and the error.
	slopes := mat.NewDense(n+2+learnTrials, n, nil)
	for p := n - 1; p >= 0; p-- { // what comes last is changed first: the evaluations before it are known
		i, kind := list[p][0], list[p][1]
		by := disturbance
		if kind != level {
			by *= size(i+1) / size([]int{ofState: i, ofImage: len(at), ofBefore: len(at), ofStateBefore: i - 1}[kind])
		}
		changed := slices.Clone(at)
		changed[i][kind] += by
		column := n - p
		products, err = l.follow(changed, column, products)
		if errors.Is(err, errLevels) { // they are close together
			return at, nil
		}
		if err != nil {
			return nil, err
		}
		slopes.Set(column+1, p, 1/by)
		slopes.Set(1, p, -1/by)
	}
	now, next, damping := 1, n+1, 1e-2 // where the samples at hand are, and the column of those that are tried next
	for range learnTrials {
		step, err := l.step(slopes, products, now, damping)
		if err != nil {
			return at, nil
		}
		changed := slices.Clone(at)
		for p, number := range list {
			changed[number[0]][number[1]] += step.AtVec(p)
		}
		grown, err := l.follow(changed, next, products)
		if err != nil && !errors.Is(err, errLevels) {
			return nil, err
		}
		damping *= 5
		if err != nil || !(miss(grown, next+1) < 4*miss(grown, now)) {
			continue
		}
		products, next = grown, next+1
		broyden(slopes, step, now, next)
		if before, after := miss(products, now), miss(products, next); after < before {
			at, now, damping = changed, next, max(damping/20, 1e-5)
			if after > (1-leastGain)*before {
				break
			}
		}
	}
	return at, nil
}

// miss returns the sum of squares by which what is at a place of products misses the target.
func miss(products *mat.SymDense, at int) float64 {
	return products.At(0, 0) - 2*products.At(0, at) + products.At(at, at)
}

// step returns that of Levenberg and Marquardt: (JᵀJ + damping diag JᵀJ) step = −Jᵀ(x − y).
func (l *learner) step(slopes *mat.Dense, products *mat.SymDense, now int, damping float64) (*mat.VecDense, error) {
	k := products.SymmetricDim()
	_, n := slopes.Dims()
	j := slopes.Slice(0, k, 0, n)
	var by mat.Dense // products with the derivatives
	by.Mul(products, j)
	miss := mat.NewVecDense(k, nil)
	miss.SetVec(0, -1)
	miss.SetVec(now, 1)
	var normal mat.Dense
	var rhs, step mat.VecDense
	normal.Mul(j.T(), &by)
	rhs.MulVec(by.T(), miss)
	rhs.ScaleVec(-1, &rhs)
	damped := mat.NewSymDense(n, nil)
	for a := range n {
		for b := range a + 1 {
			damped.SetSym(a, b, normal.At(a, b))
		}
		damped.SetSym(a, a, (1+damping)*normal.At(a, a)+1e-300)
	}
	var factor mat.Cholesky
	if !factor.Factorize(damped) {
		return nil, ErrNotFinite
	}
	return &step, factor.SolveVecTo(&step, &rhs)
}

// broyden corrects derivatives by what a step has done, from column now to column then:
//
//	J ← J + (x_then − x_now − J step) stepᵀ/|step|².
func broyden(slopes *mat.Dense, step *mat.VecDense, now, then int) {
	var off mat.VecDense
	off.MulVec(slopes, step)
	off.ScaleVec(-1, &off)
	off.SetVec(then, off.AtVec(then)+1)
	off.SetVec(now, off.AtVec(now)-1)
	slopes.RankOne(slopes, 1/mat.Dot(step, step), &off, step)
}

// inBands learns a sampler of n steps whose last combines in the parts of statistics.
func (l *learner) inBands(n int, statistics *local.Statistics) (*solver.Fitted, error) {
	fine := levelsBetween(math.Sqrt(l.schedule.At(0, 0).GT()), l.lowest, 7, fineSteps)
	plan, err := converged(l.schedule, fine)
	if err != nil {
		return nil, err
	}
	t, products := l.from, &sampler.Products{Stages: fineSteps}
	t.Plan, l.columns.Target = plan, &sampler.States{Every: fineSteps}
	if err := l.network.Follow(l.ctx, t, l.columns.Target, products); err != nil {
		return nil, err
	}
	h, w, c := l.network.Shape()
	found, err := l.learn(l.starts(trajectoriesOf(fine, products, len(t.Labels)*h*w*c), fine, n)...)
	if err != nil {
		return nil, err
	}
	out, err := l.fitted(found, statistics)
	if err != nil {
		return nil, err
	}
	if t.Plan, err = l.plan(found); err != nil {
		return nil, err
	}
	last := solver.Stage{Alpha: out.Alpha[n-1], Beta: out.Beta[n-1]}
	gram := sampler.NewGram(statistics, n, terms(last), l.columns.Target, 0, l.rows)
	if err := l.network.Follow(l.ctx, t, gram); err != nil {
		return nil, err
	}
	alpha, beta := fitStep(last, gram)
	if alpha == nil {
		return nil, ErrNotFinite
	}
	for part, fitted := range gram.Sums[0] {
		fitted.Merge(gram.Sums[1][part])
		gain := fitted.Gain(append([]float64{alpha[part], beta[part][0]}, beta[part][min(2, len(beta[part])):]...))
		alpha[part] *= gain
		for i := range beta[part] {
			beta[part][i] *= gain
		}
	}
	out.Alpha[n-1], out.Beta[n-1] = alpha, beta
	return out, nil
}

// fitted returns numbers as coefficients in the parts of statistics, which share them. A sampler that begins at a
// later step is that of the solver local on the levels.
func (l *learner) fitted(of learned, statistics *local.Statistics) (*solver.Fitted, error) {
	p, err := l.plan(of)
	if err != nil {
		return nil, err
	}
	out := &solver.Fitted{}
	for i, st := range p.Stages {
		out.Sigma = append(out.Sigma, math.Exp(of[i][level]))
		out.Alpha = append(out.Alpha, slices.Repeat(st.Alpha, statistics.Size()))
		out.Beta = append(out.Beta, slices.Repeat(st.Beta, statistics.Size()))
	}
	out.Sigma = append(out.Sigma, lastLevel)
	for k := range len(of) - 1 {
		tail, err := solver.New(solver.Settings{
			Solver: solver.LocalName, Statistics: statistics,
			Grid: solver.Grid{Kind: solver.GridSigma, Sigma: out.Sigma[k+1:]},
		}, l.schedule, 0)
		if err != nil {
			return nil, err
		}
		out.Tails = append(out.Tails, weightsOf(tail.Stages))
	}
	return out, nil
}
