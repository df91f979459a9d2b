package search

import (
	"errors"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

const (
	// learnRounds is the most times that all derivatives are measured, leastRounds the least that is worth its cost, and
	// learnTrials the number of steps tried between.
	learnRounds = 5
	leastRounds = 2
	learnTrials = 8
	// disturbance is the relative change of a state with which a derivative is measured.
	disturbance = 0.02
	// A factor of guidance is changed by guidanceDisturbance, and stays between 0 and mostGuidance. To change it by 1
	// costs guidancePull of the squared error: late in sampling it matters to few latents, but to these very much.
	guidanceDisturbance, mostGuidance, guidancePull = 0.1, 2, 0.05
	// leastGain is the relative decrease of the squared error in a step, or a round, after which another follows.
	leastGain = 0.03
	// learnRows is the number of trajectories to learn from, and of those that decide when to end.
	learnRows = 32
	// learnStarts is the most samplers that are learned; with images one more, as starts are of two kinds.
	learnStarts = 2
	// The damping of a step begins at firstDamping. It is divided by lessDamping, down to leastDamping, after a step that
	// gains, and multiplied by moreDamping after each.
	firstDamping, leastDamping = 1e-2, 1e-5
	moreDamping, lessDamping   = 5, 20
	// farOff is the ratio of squared errors from which the samples of a step say nothing about derivatives.
	farOff = 4
)

// learn learns from ranked candidates: from DPM-Solver++(2M) on the levels of the best fit from the law of the data,
// and of the best from noise, of a fitted deviation if there is any, the better one first; then, if a fit is still
// better than what was learned, from its coefficients. It ends if what it learned is the best of all. It measures what
// it learns. If nothing was fitted, or the samples are not finite, it returns none.
func (s *searcher) learn(ranked []*Candidate, share int, measure func(*Candidate) error) (out []*Candidate, err error) {
	s.Progress.Begin("learn", share, s.allowed)
	fits := slices.DeleteFunc(slices.Clone(ranked), func(c *Candidate) bool { return c.fit == nil })
	if len(fits) == 0 {
		return nil, nil
	}
	var starts []*Candidate
	for _, matched := range []bool{fits[0].Matched, !fits[0].Matched} {
		own := slices.DeleteFunc(slices.Clone(fits), func(c *Candidate) bool { return c.Matched != matched })
		if len(own) > 0 {
			starts = append(starts, own[max(0, slices.IndexFunc(own, (*Candidate).scaled))])
		}
	}
	for i, from := range append(starts, fits[0]) {
		fromFit, rival := i == len(starts), ranked[0]
		if fromFit {
			rival = from
		}
		if slices.ContainsFunc(out, func(c *Candidate) bool { return c.score() < rival.score() }) {
			break
		}
		c, err := from.fit.learned(learning{
			fromFit: fromFit, guided: s.LearnGuidance, lowest: lowestOf(s.G0), allowed: &s.allowed, progress: s.Progress.Add,
		})
		if err == nil {
			c.Matched = from.Matched
			err = measure(c)
		}
		switch {
		case errors.Is(err, ErrNotFinite):
			continue
		case err != nil:
			return out, err
		}
		out = append(out, c)
	}
	return out, nil
}

// The kinds of numbers that are learned of a step. Those of evaluations k back are ofBefore + 2(k − 1), and of their
// states the next.
const (
	level      = iota // ln σ, at which the network is evaluated
	ofStart           // ln of the standard deviation of the first state
	ofGuidance        // factor of what guidance adds to the evaluation
	ofState           // what is added to the weights of x_i in all parts
	ofImage           // to those of D_i
	ofBefore          // of D_{i−1}
	_                 // of x_{i−1}
	_                 // of D_{i−2}
	_                 // of x_{i−2}
	numbersOfStep
)

// historyOf returns how many numbers of step i are of evaluations before its own.
func historyOf(i int) int { return 2 * min(i, 2) }

// stepNumbers are the numbers of a sampler, by step and kind.
type stepNumbers [][numbersOfStep]float64

// learner learns a sampler of few steps,
//
//	x_{i+1} = α_i x_i + β_i D(x_i, σ_i) + Σ_k γ_ik D(x_{i−k}, σ_{i−k}) + δ_ik x_{i−k},    k = 1, 2,
//
// with the same numbers in all parts of an image, from the noise x_0 = s ξ. It minimises Σ |x_N(θ) − y|², where y are
// converged samples from the same latents, over all σ_i, s, α_i, β_i, γ_ik and δ_ik, and of a guided network the
// guidance of each D(x_i, σ_i), through all steps and the network, by the method of Levenberg and Marquardt.
// Derivatives are differences of samples: a number of step i is changed, and the steps after it are repeated. Between
// two such rounds, each step that is tried updates the derivatives by Broyden's formula. The network needs no
// derivatives; it only follows plans. All sums are products of samples, which stay where they are ([sampler.Columns]).
type learner struct {
	*fitter
	learning
	highest      float64              // level at which the network may be evaluated
	trajectories sampler.Trajectories // to learn from, and as many that decide when to end
	rows         int                  // of the former
	numbers      [][2]int             // which are learned, by step and kind
	columns      sampler.Columns
	from         solver.Coefficients // to whose weights the numbers are added
}

// learned returns a sampler that is learned on the trajectories of the fit. It returns ErrNotFinite if there is none.
func (f *fitter) learned(how learning) (*Candidate, error) {
	k, err := f.learnNumbers(how)
	if err != nil {
		return nil, err
	}
	if err = f.finish(&k); err != nil {
		return nil, err
	}
	c, err := given(fittedName, k, f.schedule, learnedLevels)
	if err != nil {
		return nil, err
	}
	c.early = func() ([][]solver.Stage, error) { return stagesOf(f.local.ShortTails(k)), nil }
	c.tails = func() ([][]solver.Stage, error) {
		tails, err := f.tailsOn(k.Sigma, k.Guidance)
		if errors.Is(err, ErrNotFinite) {
			return c.early()
		}
		return stagesOf(tails), err
	}
	return c, nil
}

// learning says how a sampler is learned.
type learning struct {
	// fromFit begins with the coefficients of the fit, else with DPM-Solver++(2M) on its levels, which reaches half the
	// error where one set of weights is good for all parts.
	fromFit  bool
	guided   bool    // the guidance of each evaluation is learned
	lowest   float64 // level at which the network may be evaluated
	allowed  *int    // evaluations that are left
	progress func(evaluations int)
}

// learnNumbers returns what is learned, before the last step is fitted.
func (f *fitter) learnNumbers(how learning) (k solver.Coefficients, err error) {
	rows := min(learnRows, f.samples)
	l := &learner{
		fitter: f, learning: how, highest: f.schedule.Sigma(0, f.schedule.At(0, 0).GT()),
		trajectories: f.trajectories, rows: rows,
		columns: sampler.Columns{Target: f.states, At: f.at[len(f.at)-1]},
	}
	l.trajectories.Labels = l.trajectories.Labels[:2*rows]
	l.trajectories.Progress = func(evaluations int) {
		*how.allowed -= evaluations
		how.progress(evaluations)
	}
	if l.from = f.fitted; !how.fromFit { // 2M is local of order 2 without variances
		l.from = solver.Local{Order: 2, LowerOrderFinal: true, Coordinates: f.local.Coordinates}.On(f.fitted.Sigma)
	}
	at := make(stepNumbers, len(l.from.Alpha))
	for i := range at {
		at[i][level], at[i][ofGuidance] = math.Log(f.fitted.Sigma[i]), 1
		for kind := range ofBefore + historyOf(i) {
			free := kind > ofGuidance || kind == ofGuidance && how.guided || kind == level && i > 0
			if free || i == 0 && kind <= ofStart && f.deviation != 0 { // the start is learned with its level
				l.numbers = append(l.numbers, [2]int{i, kind})
			}
		}
	}
	if f.deviation != 0 {
		at[0][ofStart] = math.Log(f.deviation)
	}
	at, err = l.best(at)
	if errors.Is(err, errLevels) { // those of the fit are close together
		err = ErrNotFinite
	}
	if err != nil {
		return k, err
	}
	weighed := func(step [numbersOfStep]float64) bool { return math.Abs(step[ofGuidance]-1) > 1e-6 }
	l.guided = l.guided && slices.ContainsFunc(at, weighed) // else it is no plan that sets guidance
	return l.coefficients(at)
}

// roundEvaluations returns the largest number of evaluations of a round in n steps, by the trajectories to learn from.
// It counts those that decide when to end.
func roundEvaluations(n int, guided bool) int {
	all := (learnTrials+4)*n + 1
	for i := range n {
		all += (4+historyOf(i))*(n-1-i) + 1
		if guided {
			all += n - i
		}
	}
	return all + n
}

// learnEvaluations returns those of a sampler that is learned in some rounds, by the same trajectories, with its tails.
func learnEvaluations(n, rounds int, guided bool) int {
	return rounds*roundEvaluations(n, guided) + 2*(substeps+4)*n
}

// errLevels is returned for levels that do not decrease, or are too low.
var errLevels = errors.New("search: levels that cannot be")

// coefficients returns numbers as coefficients.
func (l *learner) coefficients(numbers stepNumbers) (out solver.Coefficients, err error) {
	parts := len(l.from.Alpha[0])
	out.Coordinates = l.base.Coordinates
	if l.deviation != 0 {
		out.Deviation = math.Exp(numbers[0][ofStart])
	}
	for i, step := range numbers {
		sigma, ok := levelWithin(math.Exp(step[level]), l.lowest, l.highest)
		if !ok || i > 0 && !(sigma < 0.99*out.Sigma[i-1]) {
			return out, errLevels
		}
		out.Sigma = append(out.Sigma, sigma)
		if l.guided {
			out.Guidance = append(out.Guidance, step[ofGuidance])
		}
		alpha, beta := make([]float64, parts), make([][]float64, parts)
		for p := range parts {
			alpha[p] = l.from.Alpha[i][p] + step[ofState]
			beta[p] = make([]float64, 2+historyOf(i)) // in the order of plans with states: D_i, x_i, D_{i−1}, …
			copy(beta[p], l.from.Beta[i][p])
			beta[p][0] += step[ofImage]
			floats.Add(beta[p][2:], step[ofBefore:][:historyOf(i)])
			if i == 0 {
				beta[p] = beta[p][:1]
			}
		}
		out.Alpha, out.Beta = append(out.Alpha, alpha), append(out.Beta, beta)
	}
	out.Sigma = append(out.Sigma, lastLevel)
	return out, nil
}

// levelWithin returns a noise level moved between the lowest and the highest, and false if it is more than a thousandth
// outside.
func levelWithin(sigma, lowest, highest float64) (float64, bool) {
	return min(max(sigma, lowest), highest), sigma > 0.999*lowest && sigma < 1.001*highest
}

// tailsOn fits the tails of samplers that begin at each level after the first, from the states of converged
// trajectories there.
func (f *fitter) tailsOn(sigma, guidance []float64) (tails []solver.Weights, err error) {
	g := &fitter{
		ctx: f.ctx, network: f.network, trajectories: f.trajectories, schedule: f.schedule, local: f.local,
		samples: min(learnRows, f.samples), guidance: guidance,
	}
	g.local.Order, g.local.LowerOrderFinal = 2, true
	g.trajectories.Labels = g.trajectories.Labels[:2*g.samples]
	if err := g.converge(sigma); err != nil {
		return nil, err
	}
	if err := g.fitAll(sigma); err != nil {
		return nil, err
	}
	tails, err = g.tails()
	for k, tail := range tails { // of the learned sampler they take no step
		rest := k + 1 + len(tail.Alpha)
		tails[k].Alpha = append(tail.Alpha, g.fitted.Alpha[rest:]...)
		tails[k].Beta = append(tail.Beta, g.fitted.Beta[rest:]...)
	}
	return tails, err
}

// finish fits the weights of the last step in each part again, as the steps before it have changed, and scales them if
// the fit is scaled.
func (f *fitter) finish(k *solver.Coefficients) error {
	plan, err := k.Plan(f.schedule)
	if err != nil {
		return err
	}
	last := len(k.Alpha) - 1
	gram := f.gram(last+1, k.Beta[last], last)
	if err := f.follow(plan, gram); err != nil {
		return err
	}
	alpha, beta := fitWeights(k.Alpha[last], k.Beta[last], gram)
	if alpha == nil {
		return ErrNotFinite
	}
	for part, sums := range gram.Sums[0] {
		if !f.scaled {
			break
		}
		sums.Merge(gram.Sums[1][part])
		gain := sums.Gain(termsOf(alpha[part], beta[part]))
		alpha[part] *= gain
		for i := range beta[part] {
			beta[part][i] *= gain
		}
	}
	k.Alpha[last], k.Beta[last] = alpha, beta
	return nil
}

// follow makes the samples of numbers column k, and returns products with their products with the columns before added.
func (l *learner) follow(numbers stepNumbers, k int, products *mat.SymDense) (*mat.SymDense, error) {
	t, err := l.trajectoriesOf(numbers)
	if err != nil {
		return nil, err
	}
	t.Labels = t.Labels[:l.rows]
	column := &sampler.Column{Columns: &l.columns, K: k}
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

// trajectoriesOf returns the trajectories with the plan of numbers.
func (l *learner) trajectoriesOf(numbers stepNumbers) (t sampler.Trajectories, err error) {
	c, err := l.coefficients(numbers)
	if err != nil {
		return t, err
	}
	t = l.trajectories
	t.Plan, err = c.Plan(l.schedule)
	return t, err
}

// squaredError returns the mean squared error of the trajectories that decide when to end.
func (l *learner) squaredError(numbers stepNumbers) (float64, error) {
	t, err := l.trajectoriesOf(numbers)
	if err != nil {
		return 0, err
	}
	t.Seed, t.Labels = t.Seed+uint64(l.rows), t.Labels[l.rows:]
	errs := &sampler.Errors{States: l.columns.Target, At: l.columns.At, First: l.rows}
	if err := l.network.Follow(l.ctx, t, errs); err != nil {
		return 0, err
	}
	var sum float64
	for _, v := range errs.Squares {
		sum += v / float64(len(errs.Squares))
	}
	return sum, nil
}

// best returns the best numbers found from a start.
func (l *learner) best(at stepNumbers) (stepNumbers, error) {
	least := math.Inf(1)
	for range learnRounds {
		if *l.allowed < l.rows*roundEvaluations(len(at), l.guided) {
			break
		}
		found, err := l.round(at)
		if err != nil {
			return nil, err
		}
		loss, err := l.squaredError(found)
		if err != nil {
			return nil, err
		}
		gained := loss < (1-leastGain)*least
		if loss < least {
			least, at = loss, found
		}
		if !gained {
			break
		}
	}
	if math.IsInf(least, 1) { // also if no evaluations are left
		return nil, ErrNotFinite
	}
	return at, nil
}

// round measures all derivatives at numbers, and takes steps while they gain.
func (l *learner) round(start stepNumbers) (stepNumbers, error) {
	at := slices.Clone(start)
	products, err := l.follow(at, 0, nil)
	if err != nil {
		return nil, err
	}
	size := func(i int) float64 { // of state i, of data of deviation ½
		if i >= len(at) {
			return 0.5
		}
		return math.Hypot(0.5, math.Exp(at[i][level]))
	}
	n := len(l.numbers)
	// Vectors are combinations of the target, 0, and the columns, 1, …: derivatives in its columns, and the error.
	slopes := mat.NewDense(n+2+learnTrials, n, nil)
	for p := n - 1; p >= 0; p-- { // what comes last is changed first: the evaluations before it are known
		changed := slices.Clone(at)
		step, kind := l.numbers[p][0], l.numbers[p][1]
		by := disturbance
		switch { // a weight by the size of what it multiplies
		case kind == level && step == 0: // which may be the highest
			by = -by
		case kind == ofGuidance:
			by = guidanceDisturbance
		case kind == ofState:
			by *= size(step+1) / size(step)
		case kind == ofImage || kind >= ofBefore && (kind-ofBefore)%2 == 0:
			by *= size(step+1) / size(len(at))
		case kind > ofBefore:
			by *= size(step+1) / size(step-1-(kind-ofBefore)/2)
		}
		changed[step][kind] += by
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
	current, trial, damping := 1, n+1, firstDamping // columns
	for range learnTrials {
		w, v := l.pull(at, sampleError(products, current))
		step, err := dampedStep(slopes, products, current, damping, w, v)
		if err != nil {
			return at, nil
		}
		changed := slices.Clone(at)
		for p, number := range l.numbers {
			v := &changed[number[0]][number[1]]
			before := *v
			if *v += step.AtVec(p); number[1] == ofGuidance {
				*v = min(max(*v, 0), mostGuidance)
				step.SetVec(p, *v-before)
			}
		}
		grown, err := l.follow(changed, trial, products)
		if err != nil && !errors.Is(err, errLevels) {
			return nil, err
		}
		damping *= moreDamping
		if err != nil || !(sampleError(grown, trial+1) < farOff*sampleError(grown, current)) {
			continue
		}
		products, trial = grown, trial+1
		broyden(slopes, step, current, trial)
		if before, after := sampleError(products, current), sampleError(products, trial); after < before {
			at, current, damping = changed, trial, max(damping/lessDamping, leastDamping)
			if after > (1-leastGain)*before {
				break
			}
		}
	}
	return at, nil
}

// sampleError returns the squared error of the samples at a position of products.
func sampleError(products *mat.SymDense, at int) float64 {
	return products.At(0, 0) - 2*products.At(0, at) + products.At(at, at)
}

// pull returns the weights w and the distances v of a penalty Σ w v²: of factors of guidance to 1.
func (l *learner) pull(at stepNumbers, squared float64) (w, v []float64) {
	w, v = make([]float64, len(l.numbers)), make([]float64, len(l.numbers))
	for p, number := range l.numbers {
		if number[1] == ofGuidance {
			w[p], v[p] = guidancePull*squared, at[number[0]][ofGuidance]-1
		}
	}
	return w, v
}

// dampedStep returns the step of Levenberg and Marquardt, (JᵀJ + damping diag JᵀJ + diag w) step = −Jᵀ(x − y) − w v,
// with a penalty Σ w v².
func dampedStep(slopes *mat.Dense, products *mat.SymDense, now int, damping float64, w, v []float64,
) (*mat.VecDense, error) {
	k := products.SymmetricDim()
	_, n := slopes.Dims()
	j := slopes.Slice(0, k, 0, n)
	var by mat.Dense // products with the derivatives
	by.Mul(products, j)
	off := mat.NewVecDense(k, nil)
	off.SetVec(0, -1)
	off.SetVec(now, 1)
	var normal mat.Dense
	var rhs, step mat.VecDense
	normal.Mul(j.T(), &by)
	rhs.MulVec(by.T(), off)
	rhs.ScaleVec(-1, &rhs)
	damped := mat.NewSymDense(n, nil)
	for a := range n {
		for b := range a + 1 {
			damped.SetSym(a, b, normal.At(a, b))
		}
		damped.SetSym(a, a, (1+damping)*normal.At(a, a)+w[a]+1e-300)
		rhs.SetVec(a, rhs.AtVec(a)-w[a]*v[a])
	}
	var factor mat.Cholesky
	if !factor.Factorize(damped) {
		return nil, ErrNotFinite
	}
	return &step, factor.SolveVecTo(&step, &rhs)
}

// broyden updates derivatives by the effect of a step from position now to position then:
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
