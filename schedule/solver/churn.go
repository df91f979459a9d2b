package solver

import (
	"math"

	"github.com/anisoflight/anisoflight/schedule"
)

// mostChurn bounds γ: a step at most doubles the variance.
const mostChurn = math.Sqrt2 - 1

// churn is EDM's stochastic sampler (arXiv:2206.00364, algorithm 2) on several clocks. Step i of N starts not at its
// node, of geometric-mean noise level σ, but at
//
//	σ̂ = σ (1 + γ),  γ = min(S_churn/N, √2 − 1) where S_min ≤ σ ≤ S_max, else 0,
//	x̂ = x + S_noise Σ_j √(g_j(t̂) − g_j(t)) P_j ξ,
//
// with fresh unit noise ξ. t̂ is the time of σ̂. Beyond the schedule's end, and where each subspace has nodes of its
// own and so no time in common, every √g_j grows by 1 + γ instead, which is the same for J = 1. With afs the first
// step, which has no evaluation to start with, is not churned.
func churn(s Settings, sch *schedule.Schedule, row int, clocks []*clock, own bool) {
	gamma := min(s.SChurn/float64(s.Steps), mostChurn)
	for i := range s.Steps {
		var log float64
		for _, c := range clocks {
			log += math.Log(c.u[i]) / float64(len(clocks))
		}
		sigma := math.Exp(log)
		stays := gamma == 0 || sigma < s.SMin || s.SMax > 0 && sigma > s.SMax || i == 0 && s.AFS
		scale := own || sigma*(1+gamma) > sch.Sigma(row, sch.T())
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
			c.from = append(c.from, p)
		}
	}
}
