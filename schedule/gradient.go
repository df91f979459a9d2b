package schedule

// Gradient sums the gradient of a loss with respect to ln g at the knots of every path of a schedule.
type Gradient struct {
	s     *Schedule
	n     int           // samples
	dlogg [][][]float64 // [row][subspace][knot], summed over them
}

// NewGradient returns a gradient without samples.
func NewGradient(s *Schedule) *Gradient {
	d := &Gradient{s: s}
	for row := range s.Rows() {
		d.dlogg = append(d.dlogg, nil)
		for j := range s.J() {
			d.dlogg[row] = append(d.dlogg[row], make([]float64, len(s.At(row, j).tau)))
		}
	}
	return d
}

// Add adds a sample of a row at time t. Its loss has the differential Σ_j a_j dg_j + b_j dġ_j.
func (d *Gradient) Add(row int, t float64, a, b []float64) {
	for j, dlogg := range d.dlogg[row] {
		d.s.At(row, j).Chain(t, a[j], b[j], dlogg)
	}
	d.n++
}

// Mean returns the gradient of the mean loss with respect to ln g at the knots, [row][subspace][K], and with respect to
// θ, [row][subspace][K−1], or nil if the schedule has no parameters.
func (d *Gradient) Mean() (dlogg, dtheta [][][]float64) {
	scale, theta := 1/float64(max(1, d.n)), d.s.Theta()
	for row, paths := range d.dlogg {
		dlogg = append(dlogg, nil)
		if theta != nil {
			dtheta = append(dtheta, nil)
		}
		for j, sum := range paths {
			mean := make([]float64, len(sum))
			for k, v := range sum {
				mean[k] = v * scale
			}
			dlogg[row] = append(dlogg[row], mean)
			if theta != nil {
				own := make([]float64, len(theta[row][j]))
				theta[row][j].Pull(d.s.T(), d.s.At(row, j).G0(), mean, own)
				dtheta[row] = append(dtheta[row], own)
			}
		}
	}
	return dlogg, dtheta
}
