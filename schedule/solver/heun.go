package solver

import "math"

// The second points of Heun's method.
const (
	Midpoint = "midpoint"
	Endpoint = "endpoint"
)

// heun is the anisotropic form of Heun's second-order method with a general second
// point, two evaluations a step:
//
//	x′ = x − Σ_j (U_mid,j − U_j) P_j flow(x, t),   flow′ = flow(x′, t_mid),
//	x ← x − Σ_j ΔU_j P_j (flow + ½ρ_j (flow′ − flow)),
//	ρ_j = ΔU_j/(U_mid,j − U_j).
//
// The midpoint form evaluates at the middle of the step in t, the endpoint form at
// its end (ρ = 1). The running x is x′ when the step is completed, so the second
// combination takes the first one back.
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

func heunEvaluations(n int, eulerEnd bool) int {
	if eulerEnd {
		return 2*n - 1
	}
	return 2 * n
}

// heunEndsInEuler: the endpoint form would evaluate at g_0 only to average two flows over
// a last, tiny step.
func heunEndsInEuler(s Settings) bool { return s.SecondPoint == Endpoint }
