package steps

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// Choice is a grid chosen for a solver.
type Choice struct {
	Times    []float64          // n+1, from T to 0, on the teacher's schedule
	Schedule *schedule.Schedule // along the same paths; its uniform grid of n steps is Times
	// Predicted is the sum of the errors of the single steps that dynamic programming found,
	// each carried to the end, as root mean squares over all values: an estimate from
	// above of the solver's ODE error. PredictedUniform is that of the uniform grid.
	Predicted, PredictedUniform float64
}

// Choose returns the n steps of resolved settings, on their uniform grid, from candidate to candidate of the teacher's
// that have the least sum of errors. Dynamic programming runs over pairs of nodes, the last and
// the one before; a multistep method that looks back further sees the best way to the
// pair. Heun's second evaluation is taken on the trajectory.
//
// The sum takes no account of errors that cancel, as those of a good grid do. So, unless measure is
// nil, the nodes found and the uniform ones are measured, and the better are moved, one by
// one, for as long as the measured error falls.
//
// The errors of the solver local are predicted as those of DPM-Solver++(2M); what is measured is its own.
//
// progress may be nil. Errors are *solver.Error, *schedule.Error, of measure or the context.
func Choose(ctx context.Context, s solver.Settings, t *Teacher, measure Measure,
	progress func(done, total int),
) (*Choice, error) {
	if s.Solver == "heun" && s.SecondPoint != solver.Midpoint {
		return nil, &solver.Error{
			Field: "second_point",
			Msg:   "the endpoint lies too far from the trajectory for its error to be known; steps are chosen for the midpoint",
		}
	}
	if s.Steps > MaxSteps {
		return nil, &solver.Error{Field: "nfe", Msg: fmt.Sprintf("%d steps; they are chosen for at most %d", s.Steps,
			MaxSteps), TooLarge: true}
	}
	p, err := t.measure()
	if err != nil {
		return nil, err
	}
	m, n := t.M(), s.Steps
	w, err := newWalk(s, t, p)
	if err != nil {
		return nil, err
	}
	// ways[i][h] is the best way that ends with the nodes h, i.
	ways := make([]map[int]way, m+1)
	ways[0] = map[int]way{-1: {nodes: []int{0}}}
	for step := range n {
		next := make([]map[int]way, m+1)
		for i := range ways {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			for _, before := range sorted(ways[i]) {
				from := ways[i][before]
				to := m // the last step ends at the last candidate
				if step < n-1 {
					to = i + 1
				}
				for k := to; k <= m-(n-1-step); k++ {
					e, err := w.error(append(slices.Clone(from.nodes), k), step)
					if err != nil {
						return nil, err
					}
					if next[k] == nil {
						next[k] = map[int]way{}
					}
					if best, ok := next[k][i]; !ok || from.sum+e < best.sum {
						next[k][i] = way{append(slices.Clone(from.nodes), k), from.sum + e}
					}
				}
			}
		}
		ways = next
		if progress != nil {
			progress(step+1, n)
		}
	}
	best := way{sum: math.Inf(1)}
	for _, h := range sorted(ways[m]) {
		if end := ways[m][h]; end.sum < best.sum {
			best = end
		}
	}
	uniform := make([]int, n+1)
	out := &Choice{Predicted: best.sum}
	for i := range n {
		uniform[i+1] = (i + 1) * m / n
		e, err := w.error(uniform[:i+2], i)
		if err != nil {
			return nil, err
		}
		out.PredictedUniform += e
	}
	nodes := best.nodes
	if measure != nil {
		if nodes, err = better(ctx, t, nodes, uniform, measure, progress); err != nil {
			return nil, err
		}
	}
	out.Times = t.times(nodes)
	out.Schedule, err = Retimed(t.Schedule, out.Times)
	return out, err
}

// better descends from the better of two sets of nodes.
func better(ctx context.Context, t *Teacher, a, b []int, measure Measure, progress func(done, total int)) ([]int,
	error,
) {
	var errs [2]float64
	for i, nodes := range [][]int{a, b} {
		sch, err := Retimed(t.Schedule, t.times(nodes))
		if err != nil {
			return nil, err
		}
		if errs[i], err = measure(ctx, sch); err != nil {
			return nil, err
		}
	}
	if errs[1] < errs[0] {
		a, errs[0] = b, errs[1]
	}
	a, _, err := descend(ctx, t, a, errs[0], measure, progress)
	return a, err
}

// way is a sequence of candidates and the sum of its steps' errors.
type way struct {
	nodes []int
	sum   float64
}

func sorted(m map[int]way) []int {
	keys := make([]int, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
