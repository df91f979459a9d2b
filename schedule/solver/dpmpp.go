package solver

import "math"

// DPM-Solver++ (Lu et al., arXiv:2211.01095), multistep, data prediction, each subspace on its own clock λ = −ln U.
// m_0, m_1 and m_2 are the denoised images of the last nodes, h = λ_next − λ, and r_0 and r_1 are the previous steps
// over h:
//
//	order 1   x ← U′/U x + (1 − e^{−h}) m_0
//	order 2   … + ½(1 − e^{−h}) (m_0 − m_1)/r_0
//	order 3   … + φ_2 D_1 − κ φ_3 D_2,   φ_2 = 1 − (1 − e^{−h})/h,  φ_3 = φ_2/h − ½,
//	          a = (m_0 − m_1)/r_0,  b = (m_1 − m_2)/r_1,
//	          D_2 = (a − b)/(r_0 + r_1),  D_1 = a + r_0 D_2.
//
// The widespread 3M has κ = 1 and is of second order; Taylor's expansion gives κ = 2.
func dpmpp2m(s Settings, c *clock) []link       { return dpmpp(s, c, 2, 1) }
func dpmpp3m(s Settings, c *clock) []link       { return dpmpp(s, c, s.Order, 1) }
func dpmpp3mTaylor(s Settings, c *clock) []link { return dpmpp(s, c, s.Order, 2) }

func dpmpp(s Settings, c *clock, p int, kappa float64) []link {
	return c.multistep(func(i int) (alpha float64, beta []float64) {
		order := c.finalOrder(s, i, p)
		h := math.Log(c.u[i] / c.u[i+1])
		e1 := -math.Expm1(-h)
		beta = make([]float64, order)
		beta[0] = e1
		switch order {
		case 2:
			r0 := math.Log(c.u[i-1]/c.u[i]) / h
			beta[0] += e1 / (2 * r0)
			beta[1] -= e1 / (2 * r0)
		case 3:
			r0, r1 := math.Log(c.u[i-1]/c.u[i])/h, math.Log(c.u[i-2]/c.u[i-1])/h
			phi2 := 1 - e1/h
			phi3 := phi2/h - 0.5
			// φ_2 D_1 − κ φ_3 D_2 = φ_2 a + d (a − b)
			d := (phi2*r0 - kappa*phi3) / (r0 + r1)
			beta[0] += (phi2 + d) / r0
			beta[1] -= (phi2+d)/r0 + d/r1
			beta[2] += d / r1
		}
		return c.u[i+1] / c.u[i], beta
	})
}

// finalOrder returns order(i, p), and at most N−i if LowerOrderFinal is set, as published.
func (c *clock) finalOrder(s Settings, i, p int) int {
	p = c.order(i, p)
	if *s.LowerOrderFinal {
		p = min(p, c.steps()-i)
	}
	return p
}
