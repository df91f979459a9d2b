package sampler

import (
	"context"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// combination returns a function that combines the evaluations of stage k of a trajectory.
type combination func(k int) func(context.Context) error

// combinationOf returns the combinations of plans, one for each sample of a trajectory, in subspaces or coordinates.
func combinationOf(t *kernels.Trajectory, plans []*solver.Plan) (combination, error) {
	table := plans[0].Coordinates
	if table == nil {
		return func(k int) func(context.Context) error {
			alpha, beta := bySubspace(plans, k)
			return func(ctx context.Context) error { return t.Combine(ctx, alpha, beta) }
		}, nil
	}
	rows, byRow := make([]int32, len(plans)), make([]*solver.Plan, len(table.Axes))
	for i, p := range plans {
		rows[i] = int32(p.Coordinates.Row)
		byRow[p.Coordinates.Row] = p
	}
	size := len(plans[0].Stages[0].Alpha)
	return func(k int) func(context.Context) error {
		weights := byCoordinate(byRow, k, size)
		return func(ctx context.Context) error { return t.CombineCoordinates(ctx, weights) }
	}, t.UseCoordinates(table.Bands, table.Axes, rows)
}

// historyOf returns the number of evaluations that a trajectory keeps. One program serves the plans of all solvers in
// subspaces, so it is the most that any of these needs; coordinates have a program of their own.
func historyOf(p *solver.Plan) int {
	if p.Coordinates != nil {
		return p.History
	}
	return max(p.History, solver.MaxHistory)
}

// concat returns the lists of all plans, concatenated.
func concat(plans []*solver.Plan, list func(*solver.Plan) []float64) []float64 {
	var out []float64
	for _, p := range plans {
		out = append(out, list(p)...)
	}
	return out
}

// bySubspace returns the factors of stage k of the running samples, [B·J], and of the evaluations, [B·J·h].
func bySubspace(plans []*solver.Plan, k int) (alpha, beta []float64) {
	alpha = concat(plans, func(p *solver.Plan) []float64 { return p.Stages[k].Alpha })
	history := longest(plans[0].Stages[k].Beta)
	beta = make([]float64, len(alpha)*history)
	at := 0
	for _, p := range plans {
		for _, b := range p.Stages[k].Beta {
			copy(beta[at:], b)
			at += history
		}
	}
	return alpha, beta
}

// byCoordinate returns the weights of stage k, [R, 1 + h, size], given a plan for each row of the statistics; nil for
// rows that no sample uses.
func byCoordinate(plans []*solver.Plan, k, size int) []float64 {
	terms := 1
	for _, p := range plans {
		if p != nil {
			terms = max(terms, 1+longest(p.Stages[k].Beta))
		}
	}
	out := make([]float64, len(plans)*terms*size)
	for r, p := range plans {
		if p == nil {
			continue
		}
		row := out[r*terms*size:]
		copy(row, p.Stages[k].Alpha)
		for f, beta := range p.Stages[k].Beta {
			for i, v := range beta {
				row[(1+i)*size+f] = v
			}
		}
	}
	return out
}

func longest(lists [][]float64) (n int) {
	for _, list := range lists {
		n = max(n, len(list))
	}
	return n
}
