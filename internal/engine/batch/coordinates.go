package batch

import (
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// coordinates are the plans of a batch that combine in coordinates, by row of their statistics.
type coordinates struct {
	plans []*solver.Plan // nil where no sample is of the row
	size  int
}

// newCoordinates tells a trajectory the coordinates of its samples' plans; nil where those combine in subspaces.
func newCoordinates(t *kernels.Trajectory, plans []*solver.Plan) (*coordinates, error) {
	stats := plans[0].Statistics
	if stats == nil {
		return nil, nil
	}
	c := &coordinates{plans: make([]*solver.Plan, stats.Rows()), size: stats.Size()}
	axes, rows := make([][]float64, stats.Rows()), make([]int32, t.Samples())
	for r := range axes {
		axes[r] = stats.At(r).Axes
	}
	for i := range rows {
		rows[i] = int32(plans[i].Row)
		c.plans[plans[i].Row] = plans[i]
	}
	return c, t.UseCoordinates(axes, rows)
}

// weights returns the weights of stage k, [R, 1 + h, H·W·C].
func (c *coordinates) weights(k int) []float64 {
	parts := 1
	for _, p := range c.plans {
		if p != nil {
			for _, beta := range p.Stages[k].Beta {
				parts = max(parts, 1+len(beta))
			}
		}
	}
	out := make([]float64, len(c.plans)*parts*c.size)
	for r, p := range c.plans {
		if p == nil {
			continue
		}
		row := out[r*parts*c.size:]
		copy(row, p.Stages[k].Alpha)
		for f, beta := range p.Stages[k].Beta {
			for i, v := range beta {
				row[(1+i)*c.size+f] = v
			}
		}
	}
	return out
}
