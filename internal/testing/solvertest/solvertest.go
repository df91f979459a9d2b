// Package solvertest gives the tests of solvers a flow that is exact and not linear.
package solvertest

import "math"

// Mixture is the law of points x in J subspaces of one dimension each: equal parts of normal laws of variance Variance
// about Means[part][j]. It couples the subspaces: where they have different noise levels its flow is not one of each.
type Mixture struct {
	Means    [][]float64
	Variance float64
}

// Crossed returns three parts in J dimensions that lie on no line.
func Crossed(j int) Mixture {
	m := Mixture{Variance: 0.1}
	for part := range 3 {
		mean := make([]float64, j)
		for k := range mean {
			mean[k] = math.Cos(2*float64(part) + 1.3*float64(k*(part+1)))
		}
		m.Means = append(m.Means, mean)
	}
	return m
}

// Flow returns M^{1/2} ∇ log p(x) at noise variances g, M = diag g:
//
//	flow_j = √g_j Σ_k w_k(x) (m_kj − x_j)/(v + g_j),   w_k ∝ exp(−½ Σ_j (x_j − m_kj)²/(v + g_j)).
func (m Mixture) Flow(x, g []float64) []float64 {
	weights, sum, best := make([]float64, len(m.Means)), 0.0, math.Inf(-1)
	for k, mean := range m.Means {
		for j, v := range x {
			weights[k] -= (v - mean[j]) * (v - mean[j]) / (2 * (m.Variance + g[j]))
		}
		best = max(best, weights[k])
	}
	for k, w := range weights {
		weights[k] = math.Exp(w - best)
		sum += weights[k]
	}
	flow := make([]float64, len(x))
	for j, v := range x {
		for k, mean := range m.Means {
			flow[j] += weights[k] / sum * math.Sqrt(g[j]) * (mean[j] - v) / (m.Variance + g[j])
		}
	}
	return flow
}
