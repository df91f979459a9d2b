package solver

import (
	"math"
	"slices"

	"github.com/anisoflight/anisoflight/schedule"
)

// Coefficients are a sampler by its numbers: noise levels, and the weights of each step in parts of an image. The
// history holds denoised images and states, D_0, x_0, D_1, x_1, …, newest first.
type Coefficients struct {
	Sigma []float64 // noise levels of the nodes, decreasing [N+1]
	// Deviation is the standard deviation of the first state, of unit normal noise times it; 0 means Sigma[0].
	Deviation float64
	Weights
	Guidance    []float64    // of each step, as [Stage] has it; nil: all 1
	Coordinates *Coordinates // the parts; nil: all values are one part
}

// Weights are combinations of n steps.
type Weights struct {
	Alpha [][]float64   // [n][parts]
	Beta  [][][]float64 // [n][parts][history]
}

// Plan returns the plan of the coefficients in isotropic noise. It panics if the schedule has several subspaces. Errors
// are *Error.
func (k Coefficients) Plan(sch *schedule.Schedule) (*Plan, error) {
	if sch.J() != 1 {
		panic("solver: coefficients need isotropic noise")
	}
	times, err := timesOf(k.Sigma, sch, 0)
	if err != nil {
		return nil, err
	}
	c := newClock(sch.At(0, 0), times, false)
	if err := c.check(); err != nil {
		return nil, err
	}
	p := &Plan{Data: true, States: true, Coordinates: k.Coordinates, T: times, Init: c.u[:1:1]}
	if k.Deviation != 0 {
		p.Init = []float64{k.Deviation}
	}
	chains := make([][]link, len(k.Alpha[0]))
	for f := range chains {
		for i, alpha := range k.Alpha {
			chains[f] = append(chains[f], c.nodeLink(i, alpha[f], k.Beta[i][f]))
		}
	}
	err = p.assemble("these coefficients", chains)
	if k.Guidance != nil {
		for i := range p.Stages {
			p.Stages[i].Guidance = &k.Guidance[i]
		}
	}
	return p, err
}

// Steps returns weights as the stages of a tail.
func (w Weights) Steps() []Stage {
	out := make([]Stage, len(w.Alpha))
	for i, alpha := range w.Alpha {
		out[i] = Stage{Alpha: alpha, Beta: w.Beta[i]}
	}
	return out
}

// differing returns the leading weights, up to the last that differ from those of all.
func (w Weights) differing(all Weights) Weights {
	n := len(w.Alpha)
	for n > 0 && slices.Equal(w.Alpha[n-1], all.Alpha[n-1]) &&
		slices.EqualFunc(w.Beta[n-1], all.Beta[n-1], slices.Equal) {
		n--
	}
	return Weights{w.Alpha[:n], w.Beta[:n]}
}

// from returns the weights of step k and those after it.
func (w Weights) from(k int) Weights { return Weights{w.Alpha[k:], w.Beta[k:]} }

// Local makes coefficients that step every part f of an image as if its law were the normal law that the denoiser looks
// like there (package local). With λ constant over the step and
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
type Local struct {
	Order           int  // 1 … 3
	LowerOrderFinal bool // towards the last step
	Coordinates     *Coordinates
	// Variance writes λ of every part at a noise level to dst [parts]. It may be nil: λ is then 0.
	Variance func(dst []float64, sigma float64)
}

// On returns the coefficients between noise levels sigma, decreasing [N+1].
func (l Local) On(sigma []float64) Coefficients { return l.leading(sigma, len(sigma)-1) }

// leading returns those of the first n steps.
func (l Local) leading(sigma []float64, n int) Coefficients {
	out := Coefficients{Sigma: sigma, Coordinates: l.Coordinates}
	parts := 1
	if l.Coordinates != nil {
		parts = l.Coordinates.Parts()
	}
	variances := make([][]float64, n+1) // λ by node
	for i := range variances {
		if variances[i] = make([]float64, parts); l.Variance != nil {
			l.Variance(variances[i], sigma[i])
		}
	}
	for i := range n {
		alpha, beta := make([]float64, parts), make([][]float64, parts)
		for f := range parts {
			alpha[f], beta[f] = l.step(sigma, i, math.Sqrt(variances[i][f]*variances[i+1][f]))
		}
		out.Alpha, out.Beta = append(out.Alpha, alpha), append(out.Beta, beta)
	}
	return out
}

// Tails returns, for each step k = 1 … N − 1, the leading weights of a sampler that begins there, up to the last that
// differ from those of all steps.
func (l Local) Tails(all Coefficients) (out []Weights) {
	for k := 1; k < len(all.Alpha); k++ {
		n := min(len(all.Alpha)-k, l.Order)
		rest := Weights{all.Alpha[k : k+n], all.Beta[k : k+n]}
		out = append(out, l.leading(all.Sigma[k:], n).differing(rest))
	}
	return out
}

// ShortTails returns, for each step k = 1 … N − 1, the weights of order 2 that replace those of given coefficients
// which use evaluations from before that step.
func (l Local) ShortTails(of Coefficients) (out []Weights) {
	l.Order = 2
	for k := 1; k < len(of.Alpha); k++ {
		rest, n := of.from(k), 0
		for n < len(rest.Alpha) && slices.ContainsFunc(rest.Beta[n], func(b []float64) bool { return reach(b) > n }) {
			n++
		}
		short := l.leading(of.Sigma[k:], n)
		out = append(out, short.Weights)
	}
	return out
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

// step returns the weights of step i with a given λ: of the running x, and of D_0, x_0, D_1, x_1, …
func (l Local) step(u []float64, i int, variance float64) (alpha float64, beta []float64) {
	decay, weights := l.integrals(u, i, variance)
	alpha = decay
	for k, w := range weights { // w m_k, where m_k belongs to the evaluation k back
		part := w * variance / (u[i-k] * u[i-k])
		beta = append(beta, w+part, -part)
	}
	alpha += beta[1]
	if beta[1] = 0; len(beta) == 2 {
		beta = beta[:1]
	}
	return alpha, beta
}

// integrals returns v′/v and the weights of m_0, m_1, … in v′ ∫ m d(1/v) over step i.
func (l Local) integrals(u []float64, i int, variance float64) (decay float64, w []float64) {
	order := min(l.Order, i+1)
	if l.LowerOrderFinal {
		order = min(order, len(u)-1-i)
	}
	s0, s1 := u[i], u[i+1]
	length := math.Log(s0 / s1)
	nodes := make([]float64, order) // where m_0, m_1, … are in ln σ, which goes from 0 to 1 over the step
	for k := range nodes {
		nodes[k] = math.Log(s0/u[i-k]) / length
	}
	decay = math.Sqrt((variance + s1*s1) / (variance + s0*s0))
	total := (s0 - s1) * (s0 + s1) / (variance + s0*s0) / (1 + decay) // 1 − v′/v, the integral of 1
	w = make([]float64, order)
	for k := 1; k < order; k++ {
		if order == 2 {
			w[k] = total / (2 * nodes[k])
		} else {
			end := math.Sqrt(variance + s1*s1)
			w[k] = gauss16.panels(0, 1, 1/length, func(t float64) float64 {
				sigma := s0 * math.Exp(-t*length)
				return lagrange(nodes, k, t) * length * end * sigma * sigma / math.Pow(variance+sigma*sigma, 1.5)
			})
		}
		w[0] -= w[k]
	}
	w[0] += total
	return decay, w
}
