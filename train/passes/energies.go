package passes

import (
	"context"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train/data"
)

// EnergySettings says on how many images Energies measures a schedule.
type EnergySettings struct {
	Samples int
	C       float64                   // of the loss weight
	Seed    uint64                    // of images, noise and times
	Weight  func(label int32) float64 // of a class
}

// Energies returns the energy T² Σ_j ω_j |P_j r|² of a schedule under a network, sample by
// sample: of images as the data set has them, each with the row of its class, at stratified
// times. The energies of two schedules are paired; see [stats.StratifiedMean].
func Energies(ctx context.Context, m *kernels.Model, w *kernels.Weights, d *data.Dataset, s *schedule.Schedule,
	set EnergySettings,
) ([]float64, error) {
	n, j := set.Samples, m.J()
	meter := newMeter(m, w, d, nil, set.Seed, min(n, 128))
	g, gdot, scale := make([]float64, n*j), make([]float64, n*j), make([]float64, n)
	for i := range n {
		label := d.Label(meter.image(uint64(i)))
		row, err := s.Row(int(label))
		if err != nil {
			return nil, err
		}
		s.Eval(row, meter.time(i, n, s.T()), g[i*j:(i+1)*j], gdot[i*j:(i+1)*j])
		scale[i] = s.T() * s.T() * set.Weight(label)
	}
	residual, err := meter.residuals(ctx, g)
	if err != nil {
		return nil, err
	}
	energy := make([]float64, n)
	for i, v := range residual {
		energy[i/j] += scale[i/j] * schedule.Omega(g[i], gdot[i], set.C) * v
	}
	return energy, nil
}
