package passes

import (
	"context"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train/data"
	"github.com/anisoflight/anisoflight/train/stats"
)

// Comparison holds the energies of several schedules under one network.
type Comparison struct {
	samples [][]float64 // [schedule][sample]: T² Σ_j ω_j |P_j r|²
}

// Compare evaluates schedules on the same images, noise and places in [0, 1]. Those of
// one subspace may stand beside those of the model's. Classes of a schedule per class
// count alike.
func Compare(ctx context.Context, m *kernels.Model, w *kernels.Weights, d *data.Dataset, schedules []*schedule.Schedule,
	set EvaluateSettings,
) (*Comparison, error) {
	set = set.resolved()
	c := &Comparison{samples: make([][]float64, len(schedules))}
	for i, s := range schedules {
		total := make([]float64, set.Points*set.Samples)
		scale := s.T() * s.T() / float64(s.Rows())
		err := along(ctx, m, w, d, s, set, func(_ int, weight, residual []float64) {
			for k, r := range residual {
				total[k/m.J()] += scale * weight[k] * r
			}
		})
		if err != nil {
			return nil, err
		}
		c.samples[i] = total
	}
	return c, nil
}

// Energy returns the energy of a schedule, E = T²·(mean loss), and its standard error.
func (c *Comparison) Energy(i int) (energy, stderr float64) {
	return stats.StratifiedMean(c.samples[i])
}

// Difference returns the energy of schedule i less that of k, and its standard error:
// that of the differences sample by sample, in which most of the noise cancels.
func (c *Comparison) Difference(i, k int) (difference, stderr float64) {
	d := make([]float64, len(c.samples[i]))
	for s := range d {
		d[s] = c.samples[i][s] - c.samples[k][s]
	}
	return stats.StratifiedMean(d)
}
