package gaussian

import (
	"context"
	"math"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// SampleFunc follows a plan through a network from latents of its own, the same every
// time, and returns all samples' values.
type SampleFunc func(ctx context.Context, p *solver.Plan) ([]float32, error)

// teacherSteps is the least number of Heun's steps that count as converged: they err a
// hundred times less than five of the best multistep solvers.
const teacherSteps = 64

// SolutionError returns a sampler's ODE error on a row of a schedule: the root mean
// square, over all samples' values, of their difference to the converged solution from
// the same latents along the same path. Grids of the schedule's own times are compared
// most exactly, as the steps of the teacher then divide them.
func SolutionError(ctx context.Context, s solver.Settings, sch *schedule.Schedule, sample SampleFunc) (float64, error) {
	s, err := s.Resolve()
	if err != nil {
		return 0, err
	}
	p, err := solver.New(s, sch, 0)
	if err != nil {
		return 0, err
	}
	x, err := sample(ctx, p)
	if err != nil {
		return 0, err
	}
	target, err := converged(ctx, sch, s.Steps, sample)
	return distance(x, target), err
}

// converged returns the solution along a schedule's path. Its steps divide those of a
// uniform grid of n, so that no knot of a schedule through n nodes lies within one.
func converged(ctx context.Context, sch *schedule.Schedule, n int, sample SampleFunc) ([]float32, error) {
	p, err := solver.New(solver.Settings{Solver: "heun", Steps: n * ((teacherSteps + n - 1) / n)}, sch, 0)
	if err != nil {
		return nil, err
	}
	return sample(ctx, p)
}

// distance returns the root mean squared difference.
func distance(a, b []float32) float64 {
	var sum float64
	for i, v := range a {
		d := float64(v) - float64(b[i])
		sum += d * d
	}
	return math.Sqrt(sum / float64(max(1, len(a))))
}
