package solver

import "math"

// localGaussian steps every part f of an image as if its law were the normal law that the denoiser looks like there
// (package local). With λ constant over the step and
//
//	D = q x + (1 − q) m,   q = λ/(λ + σ²),   m = D + (λ/σ²)(D − x),   v(σ) = √(λ + σ²),
//
// the probability flow dx/dσ = (x − D)/σ is d(x/v) = m d(1/v). This is the flow that DPM-Solver++ integrates, with v
// for σ and m for D:
//
//	x ← v′/v x + v′ ∫ m d(1/v),   v′ = v(σ′).
//
// In order p, m is the polynomial of degree p − 1 in ln σ through its values at the last nodes. Order 1 is exact for a
// normal law and any step. With λ = 0, orders 1 to 3 are DPM-Solver++, with half the slope of the line as in 2M.
//
// λ is the geometric mean of its values at both ends. Older m are computed with the λ of the current step, so they need
// the state at which D was evaluated: Plan.States. All weights stay bounded however large λ/σ² is, since v′ ∫ d(1/v) ≤
// ½ (σ² − σ′²)/(λ + σ²).
//
// The corrector repeats a step when its end has been evaluated, with the polynomial through m′ as well. This costs no
// evaluation and raises the order by one. It uses λ at the end: with the larger λ of the step, m′ would weigh D′ − x′
// by λ/σ′². With λ = 0 this is the corrector of UniPC.
type localGaussian struct {
	order     int
	lower     bool // towards the last step
	corrector bool
	u         []float64 // noise levels of the nodes, decreasing
}

// checkLocal returns an error if there are no statistics.
func checkLocal(s Settings) error {
	if s.Statistics == nil {
		return failf("solver", "%s needs a schedule with statistics of the denoiser; make one of kind geodesic with "+
			"statistics", LocalName)
	}
	return nil
}

// coordinates returns the coordinates of the statistics.
func (s Settings) coordinates() *Coordinates {
	out := &Coordinates{Bands: s.Statistics.Bands(), Axes: make([][]float64, s.Statistics.Rows()), Row: s.StatisticsRow}
	for r := range out.Axes {
		out.Axes[r] = s.Statistics.At(r).Axes
	}
	return out
}

// localLinks returns the links of every part.
func localLinks(s Settings, c *clock) [][]link {
	l := localGaussian{order: s.Order, lower: *s.LowerOrderFinal, corrector: s.Corrector, u: c.u}
	variances := make([][]float64, c.linkCount()+1) // λ by node
	for i := range variances {
		variances[i] = make([]float64, s.Statistics.Size())
		s.Statistics.Variance(variances[i], s.StatisticsRow, c.u[i])
	}
	chains := make([][]link, s.Statistics.Size())
	lambda := make([]float64, len(variances))
	for f := range chains {
		for i := range lambda {
			lambda[i] = variances[i][f]
		}
		for i, form := range l.forms(lambda) {
			alpha, beta := form.split()
			chains[f] = append(chains[f], c.nodeLink(i, alpha, beta))
		}
	}
	return chains
}

// localForm has weights, newest first, of each evaluation and the state that it was made at: D_0, x_0, D_1, x_1, … x_0
// is the running x.
type localForm []float64

// split returns the weights of the running x and of the history.
func (l localForm) split() (alpha float64, beta []float64) {
	alpha, l[1] = l[1], 0
	if len(l) == 2 {
		l = l[:1]
	}
	return alpha, l
}

// add adds w m_k, where m_k belongs to the pair k evaluations back, at noise level sigma.
func (l *localForm) add(k int, w, variance, sigma float64) {
	for len(*l) < 2*k+2 {
		*l = append(*l, 0)
	}
	part := w * variance / (sigma * sigma)
	(*l)[2*k] += w + part
	(*l)[2*k+1] -= part
}

// forms returns the combinations of a part whose λ is lambda[i] at node i, for the steps between these nodes.
func (l localGaussian) forms(lambda []float64) []localForm {
	out := make([]localForm, len(lambda)-1)
	var last localStep
	for i := range out {
		now := l.step(i, math.Sqrt(lambda[i]*lambda[i+1]), false)
		form := localForm{0, 1} // the state at node i, corrected
		if i > 0 && l.corrector {
			again := l.step(i-1, lambda[i], true)
			factor := again.decay / last.decay // of x, less what the step had added to it
			form[1] = factor
			for k, w := range last.weights {
				form.add(k+1, -factor*w, last.variance, l.u[i-1-k])
			}
			for k, w := range again.weights {
				form.add(k, w, again.variance, l.u[i-k])
			}
		}
		for k := range form {
			form[k] *= now.decay
		}
		for k, w := range now.weights {
			form.add(k, w, now.variance, l.u[i-k])
		}
		out[i], last = form, now
	}
	return out
}

// localStep is x ← decay x + Σ_k weights_k m_k.
type localStep struct {
	variance float64
	decay    float64   // v′/v
	weights  []float64 // newest first; of m′ at the end of the step before all others, in a corrector
}

// step returns step i with a given λ, as a predictor or as a corrector.
func (l localGaussian) step(i int, variance float64, corrected bool) localStep {
	order := min(l.order, i+1)
	if l.lower {
		order = min(order, len(l.u)-1-i)
	}
	s0, s1 := l.u[i], l.u[i+1]
	length := math.Log(s0 / s1)
	var nodes []float64 // where m′, m_0, m_1, … are in ln σ, which goes from 0 to 1 over the step
	origin := 0
	if corrected {
		nodes, origin = []float64{1}, 1
	}
	for k := range order {
		nodes = append(nodes, math.Log(s0/l.u[i-k])/length)
	}
	decay := math.Sqrt((variance + s1*s1) / (variance + s0*s0))
	total := (s0 - s1) * (s0 + s1) / (variance + s0*s0) / (1 + decay) // 1 − v′/v, the integral of 1
	w := make([]float64, len(nodes))
	for k, at := range nodes {
		switch {
		case k == origin:
			continue
		case len(nodes) == 2:
			w[k] = total / (2 * at)
		default:
			end := math.Sqrt(variance + s1*s1)
			w[k] = gauss16.panels(0, 1, 1/length, func(t float64) float64 {
				sigma := s0 * math.Exp(-t*length)
				return lagrange(nodes, k, t) * length * end * sigma * sigma / math.Pow(variance+sigma*sigma, 1.5)
			})
		}
		w[origin] -= w[k]
	}
	w[origin] += total
	return localStep{variance: variance, decay: decay, weights: w}
}

// Fitted has the coefficients of a sampler in the parts of statistics, fitted to a network's own trajectories. The
// history has states, as for local.
type Fitted struct {
	Sigma []float64 // noise levels of the nodes, decreasing [N+1]
	Weights
	// Tails are, for each step k = 1 … N − 1, the leading combinations of a sampler that begins there; those of the whole
	// sampler follow. If Tails is nil, local of order 2 is used while the history is short.
	Tails []Weights
}

// Weights are combinations of n steps.
type Weights struct {
	Alpha [][]float64   // [n][parts]
	Beta  [][][]float64 // [n][parts][history]
}

// checkFitted returns an error if there are no coefficients, or none for these steps.
func checkFitted(s Settings) error {
	f := s.Fitted
	switch {
	case f == nil || s.Statistics == nil:
		return failf("solver", "%s needs a schedule with fitted coefficients; make one of kind fit", FittedName)
	case s.Steps != len(f.Alpha):
		return failf("nfe", "must be %d, which the coefficients of this schedule were fitted for, got %d", len(f.Alpha),
			s.Steps)
	case s.Grid.Kind != GridSchedule:
		return failf("grid", "must be left out with solver %s, which has nodes of its own", FittedName)
	}
	return nil
}

// fittedLinks returns the links of every part.
func fittedLinks(s Settings, c *clock) [][]link {
	fitted, tail := s.Fitted, Weights{}
	chains := make([][]link, len(fitted.Alpha[0]))
	short := make([][]link, len(chains)) // while the history is
	begin := len(fitted.Alpha) - c.steps()
	if begin > 0 && fitted.Tails != nil {
		tail = fitted.Tails[begin-1]
	} else if begin > 0 {
		s.Order = 2
		short = localLinks(s, c)
	}
	for f := range chains {
		for i := range c.linkCount() {
			l := c.nodeLink(i, fitted.Alpha[begin+i][f], fitted.Beta[begin+i][f])
			if i < len(tail.Alpha) {
				l.alpha, l.beta = tail.Alpha[i][f], tail.Beta[i][f]
			} else if short[f] != nil && reach(l.beta) > i {
				l = short[f][i]
			}
			chains[f] = append(chains[f], l)
		}
	}
	return chains
}

// reach returns the number of evaluations before the newest that a combination uses.
func reach(beta []float64) int {
	for n := len(beta); n > 2; n-- {
		if beta[n-1] != 0 {
			return (n - 1) / 2
		}
	}
	return 0
}
