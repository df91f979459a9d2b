package local

import "github.com/anisoflight/anisoflight/schedule/solver"

// Sampler returns the maker of coefficients for a row's variances, of order 2, in the parts of the statistics.
func (s *Statistics) Sampler(row int) solver.Local {
	parts := &solver.Coordinates{Bands: s.bands, Axes: make([][]float64, len(s.rows)), Row: row}
	for r, of := range s.rows {
		parts.Axes[r] = of.Axes
	}
	return solver.Local{
		Order: 2, LowerOrderFinal: true, Coordinates: parts,
		Variance: func(dst []float64, sigma float64) { s.Variance(dst, row, sigma) },
	}
}
