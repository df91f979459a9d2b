package gaussian

import "math"

// numStarts is the number of starts.
const numStarts = 10

// starts returns nodes of n steps to start from, for directions in the order of
// grouped: uniform in ln σ, and EDM's rule (arXiv:2206.00364, table 1) with several
// exponents ρ, down to several noise levels about the data's own, then to σ_n in one
// step.
func starts(band []group, n int, hi, lo float64) [][]float64 {
	out := [][]float64{levels(make([]float64, n-1), hi, lo)}
	own := math.Sqrt(band[len(band)/2].Variance)
	for _, rho := range []float64{3, 7, 100} {
		for _, part := range []float64{1. / 64, 1. / 8, 1} {
			last := min(max(part*own, 2*lo), math.Sqrt(hi*lo))
			sigma := make([]float64, n+1)
			a, b := math.Pow(hi, 1/rho), math.Pow(last, 1/rho)
			for i := range n {
				sigma[i] = math.Pow(a+float64(i)/float64(max(n-1, 1))*(b-a), rho)
			}
			sigma[0], sigma[n] = hi, lo
			out = append(out, sigma)
		}
	}
	return out
}
