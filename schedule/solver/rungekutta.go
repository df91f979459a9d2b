package solver

import (
	"math"

	"github.com/anisoflight/anisoflight/schedule"
)

// euler is the first-order method with one evaluation per step:
//
//	x ← x − Σ_j ΔU_j P_j flow,  ΔU_j = U_next,j − U_j.
func euler(_ Settings, c *clock) []link {
	out := make([]link, c.steps())
	for i := range out {
		out[i] = c.eulerStep(i)
	}
	return out
}

// eulerStep returns the only link of step i.
func (c *clock) eulerStep(i int) link {
	from := c.start(i)
	return link{t: from.t, g: from.g, alpha: 1, beta: []float64{from.u - c.u[i+1]}, step: i, noise: from.noise}
}

// The second points of Heun's method.
const (
	Midpoint = "midpoint"
	Endpoint = "endpoint"
)

// heun is the anisotropic form of Heun's second-order method with a general second point and two evaluations per step:
//
//	x′ = x − Σ_j (U_mid,j − U_j) P_j flow(x, t),   flow′ = flow(x′, t_mid),
//	x ← x − Σ_j ΔU_j P_j (flow + ½ρ_j (flow′ − flow)),
//	ρ_j = ΔU_j/(U_mid,j − U_j).
//
// The midpoint form evaluates at the middle of the step in t, the endpoint form at its end (ρ = 1). The running x is x′
// at the end of the step, so the second combination subtracts the first one.
func heun(s Settings, c *clock) []link {
	var out []link
	for i := range c.steps() {
		if c.ends(i) {
			out = append(out, c.eulerStep(i))
			break
		}
		from := c.start(i)
		tMid, gMid := c.t[i+1], c.g[i+1]
		if s.SecondPoint == Midpoint {
			tMid = (from.t + c.t[i+1]) / 2
			gMid, _ = c.path.Eval(tMid)
		}
		first := math.Sqrt(gMid) - from.u
		whole := c.u[i+1] - from.u
		half := whole / first / 2 // ½ρ
		out = append(out,
			link{t: from.t, g: from.g, alpha: 1, beta: []float64{-first}, step: -1, noise: from.noise},
			link{t: tMid, g: gMid, alpha: 1, beta: []float64{-whole * half, first - whole*(1-half)}, step: i})
	}
	return out
}

// heunEndsInEuler reports whether the last step is an Euler step: the endpoint form would evaluate at g_0 only to
// average two flows over a tiny step.
func heunEndsInEuler(s Settings) bool { return s.SecondPoint == Endpoint }

// mostChurn bounds γ, so that a step at most doubles the variance.
const mostChurn = math.Sqrt2 - 1

// churn is EDM's stochastic sampler (arXiv:2206.00364, algorithm 2) on several clocks. Step i of N starts not at its
// node, of geometric-mean noise level σ, but at
//
//	σ̂ = σ (1 + γ),  γ = min(S_churn/N, √2 − 1) if S_min ≤ σ ≤ S_max, otherwise 0,
//	x̂ = x + S_noise Σ_j √(g_j(t̂) − g_j(t)) P_j ξ,
//
// with fresh unit noise ξ and t̂ the time of σ̂. Beyond the schedule's end every √g_j grows by 1 + γ instead, which is
// the same for J = 1.
func churn(s Settings, sch *schedule.Schedule, row int, clocks []*clock) {
	gamma := min(s.SChurn/float64(s.Steps), mostChurn)
	for i := range s.Steps {
		var log float64
		for _, c := range clocks {
			log += math.Log(c.u[i]) / float64(len(clocks))
		}
		sigma := math.Exp(log)
		stays := gamma == 0 || sigma < s.SMin || s.SMax > 0 && sigma > s.SMax
		scale := sigma*(1+gamma) > sch.Sigma(row, sch.T())
		for _, c := range clocks {
			p := point{t: c.t[i], g: c.g[i], u: c.u[i]}
			switch {
			case stays:
			case scale:
				p.u *= 1 + gamma
				p.g = p.u * p.u
				p.t = c.path.Inverse(min(p.g, c.path.GT()))
			default:
				p.t = sch.TimeOf(row, sigma*(1+gamma))
				p.g, _ = c.path.Eval(p.t)
				p.u = math.Sqrt(p.g)
			}
			p.noise = s.SNoise * math.Sqrt(max(0, p.g-c.g[i]))
			c.starts = append(c.starts, p)
		}
	}
}
