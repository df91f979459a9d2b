package batch

import (
	"context"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// coefficients moves a batch of samples along their plans, in the parts of the plans.
type coefficients interface {
	// move returns the combination of stage k.
	move(k int) func(context.Context) error
}

// newCoefficients returns the coefficients of the plans of a trajectory's samples.
func newCoefficients(t *kernels.Trajectory, plans []*solver.Plan) (coefficients, error) {
	if plans[0].Coordinates != nil {
		return newByCoordinate(t, plans)
	}
	return bySubspace{t, plans}, nil
}

// historyOf returns the evaluations that a trajectory keeps. One program serves all plans in subspaces, so it is the
// most that any needs; coordinates have a program of their own.
func historyOf(p *solver.Plan) int {
	if p.Coordinates != nil {
		return p.History
	}
	return solver.MaxHistory
}

// gathered returns a list of each plan, one after the other.
func gathered(plans []*solver.Plan, list func(*solver.Plan) []float64) []float64 {
	var out []float64
	for _, p := range plans {
		out = append(out, list(p)...)
	}
	return out
}

// bySubspace are the coefficients of plans in the schedule's subspaces.
type bySubspace struct {
	t     *kernels.Trajectory
	plans []*solver.Plan
}

func (c bySubspace) move(k int) func(context.Context) error {
	alpha := gathered(c.plans, func(p *solver.Plan) []float64 { return p.Stages[k].Alpha })
	history := longest(c.plans[0].Stages[k].Beta)
	beta := make([]float64, len(alpha)*history) // [B·J·h]
	at := 0
	for _, p := range c.plans {
		for _, b := range p.Stages[k].Beta {
			copy(beta[at:], b)
			at += history
		}
	}
	return func(ctx context.Context) error { return c.t.Combine(ctx, alpha, beta) }
}

// byCoordinate are the coefficients of plans in coordinates, by row of the statistics.
type byCoordinate struct {
	t     *kernels.Trajectory
	plans []*solver.Plan // nil if no sample is of the row
	size  int            // coordinates
}

// newByCoordinate gives a trajectory the coordinates of its samples' plans.
func newByCoordinate(t *kernels.Trajectory, plans []*solver.Plan) (*byCoordinate, error) {
	table := plans[0].Coordinates
	c := &byCoordinate{t: t, plans: make([]*solver.Plan, len(table.Axes)), size: table.H * table.W * table.C}
	rows := make([]int32, len(plans))
	for i, p := range plans {
		rows[i] = int32(p.Coordinates.Row)
		c.plans[p.Coordinates.Row] = p
	}
	return c, t.UseCoordinates(table.Axes, rows)
}

func (c *byCoordinate) move(k int) func(context.Context) error {
	weights := c.weights(k)
	return func(ctx context.Context) error { return c.t.CombineCoordinates(ctx, weights) }
}

// weights returns the weights of stage k, [R, 1 + h, H·W·C].
func (c *byCoordinate) weights(k int) []float64 {
	terms := 1
	for _, p := range c.plans {
		if p != nil {
			terms = max(terms, 1+longest(p.Stages[k].Beta))
		}
	}
	out := make([]float64, len(c.plans)*terms*c.size)
	for r, p := range c.plans {
		if p == nil {
			continue
		}
		row := out[r*terms*c.size:]
		copy(row, p.Stages[k].Alpha)
		for f, beta := range p.Stages[k].Beta {
			for i, v := range beta {
				row[(1+i)*c.size+f] = v
			}
		}
	}
	return out
}

// longest returns the length of the longest list.
func longest(lists [][]float64) (n int) {
	for _, list := range lists {
		n = max(n, len(list))
	}
	return n
}
