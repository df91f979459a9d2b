package steps

import (
	"context"
	"slices"

	"github.com/anisoflight/anisoflight/schedule"
)

// mostTrials bounds the grids that are measured.
const mostTrials = 120

// Measure returns a sampler's ODE error on the uniform grid of a schedule.
type Measure func(ctx context.Context, sch *schedule.Schedule) (float64, error)

// descend moves one node at a time by a few candidates, then by fewer, for as long as
// the measured error falls. It returns the nodes and their error.
func descend(ctx context.Context, t *Teacher, nodes []int, best float64, measure Measure,
	progress func(done, total int),
) ([]int, float64, error) {
	trials := 0
	for stride := max(1, t.M()/len(nodes)/2); stride > 0; stride /= 2 {
		for moved := true; moved; {
			moved = false
			for k := 1; k < len(nodes)-1; k++ {
				for _, by := range []int{stride, -stride} {
					to := nodes[k] + by
					if to <= nodes[k-1] || to >= nodes[k+1] || trials == mostTrials {
						continue
					}
					trials++
					next := slices.Clone(nodes)
					next[k] = to
					sch, err := Retimed(t.Schedule, t.times(next))
					if err != nil {
						return nil, 0, err
					}
					e, err := measure(ctx, sch)
					if err != nil {
						return nil, 0, err
					}
					if progress != nil {
						progress(trials, mostTrials)
					}
					if e < best {
						nodes, best, moved = next, e, true
						break
					}
				}
			}
		}
	}
	return nodes, best, nil
}

// times returns the times of candidates.
func (t *Teacher) times(nodes []int) []float64 {
	out := make([]float64, len(nodes))
	for k, i := range nodes {
		out[k] = t.time(i)
	}
	return out
}
