package schedules

import (
	"context"
	"math"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/batch"
	"github.com/anisoflight/anisoflight/internal/engine/guides"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/solver/steps"
)

// mostTeacher bounds the numbers that a teacher's trajectories take.
const mostTeacher = 1 << 26

// chooseSteps makes a schedule along the paths of another on which a solver's uniform steps are those that err least on
// a model.
func (k *Maker) chooseSteps(ctx context.Context, req api.StepsSchedule, progress func(api.Meta)) (*newSchedule, error) {
	m, named, on, err := k.onSchedule(req.Model, req.Schedule)
	if err != nil {
		return nil, err
	}
	set, err := solver.Settings{Solver: req.Solver, NFE: req.NFE}.Resolve()
	if err != nil {
		return nil, err
	}
	if named.Statistics != nil {
		set.Statistics = named.Statistics.Statistics
	}
	if set.Steps > steps.MaxSteps {
		return nil, &solver.Error{Field: "nfe", Msg: "so many steps need no choice; ask for fewer", TooLarge: true}
	}
	candidates := steps.Candidates(set.Steps)
	if err := checkMemory(req.Samples, on, 4*candidates, mostTeacher); err != nil {
		return nil, err
	}
	by, err := guides.New(k.Catalog, req.Guided, m, on.Basis())
	if err != nil {
		return nil, err
	}
	release, err := by.Hold(m)
	if err != nil {
		return nil, err
	}
	defer release()
	run, err := k.ensemble(m, on, by, named, req.Seed, req.Samples)
	if err != nil {
		return nil, err
	}
	plans := plansOf(set, named.Schedule)
	for _, r := range run.Rows {
		if _, err := plans(r.Label); err != nil {
			return nil, err
		}
	}
	report := api.Sparsely(progress)
	teacher, end, err := teach(ctx, run, named.Schedule, candidates, report)
	if err != nil {
		return nil, err
	}
	choice, err := steps.Choose(ctx, set, teacher, func(ctx context.Context, sch *schedule.Schedule) (float64, error) {
		return errorOf(ctx, run, set, sch, end)
	}, report)
	if err != nil {
		return nil, err
	}
	told := &api.Steps{
		Solver: set.Solver, Steps: set.Steps, NFE: set.NFE, Samples: req.Samples, Schedule: named.Name, T: choice.Times,
		Predicted: choice.Predicted, PredictedUniform: choice.PredictedUniform,
	}
	held := k.Batcher.Ensemble(batch.Network{On: on, Weights: m.Weights()}, m.Shape.Labels, req.Seed+uint64(req.Samples),
		req.Samples)
	held.Start, held.Guide = run.Start, run.Guide
	if end, err = held.Along(ctx, plansOf(solver.Settings{Solver: "heun", Steps: 2 * candidates}, named.Schedule),
		nil); err != nil {
		return nil, err
	}
	if told.Error, err = errorOf(ctx, held, set, choice.Schedule, end); err != nil {
		return nil, err
	}
	told.ErrorUniform, err = errorOf(ctx, held, set, named.Schedule, end)
	made := along(named, choice.Schedule)
	made.steps = told
	return made, err
}

// teach follows converged trajectories along a schedule: Heun's method, each step from one time of the teacher to the
// next. It returns the samples at their ends, too.
func teach(
	ctx context.Context, e *batch.Ensemble, sch *schedule.Schedule, candidates int, report func(done, total int),
) (*steps.Teacher, []float32, error) {
	out := &steps.Teacher{
		Schedule: sch, Basis: e.Basis(), X: make([][]float32, 2*candidates+1),
		D: make([][]float32, 2*candidates),
	}
	for _, r := range e.Rows {
		out.Labels = append(out.Labels, r.Label)
	}
	size, done, total := e.Pixels(), 0, 4*candidates*len(e.Rows)
	plans := plansOf(solver.Settings{Solver: "heun", Steps: 2 * candidates}, sch)
	var err error
	if out.X[0], err = e.States(plans); err != nil {
		return nil, nil, err
	}
	end, err := e.Along(ctx, plans,
		func(k int, latents []float32, rows int, t *kernels.Trajectory) error {
			at := make([]float32, len(latents))
			done += rows
			report(done, total)
			if k%2 == 0 { // the first of a step's two evaluations, at its state
				if err := t.Denoised(at); err != nil {
					return err
				}
				out.D[k/2] = append(out.D[k/2], at[:rows*size]...)
				return nil
			}
			if err := t.X(at); err != nil {
				return err
			}
			out.X[k/2+1] = append(out.X[k/2+1], at[:rows*size]...)
			return nil
		})
	return out, end, err
}

// errorOf returns a sampler's ODE error: the root mean square of what it misses the converged samples by.
func errorOf(
	ctx context.Context, e *batch.Ensemble, set solver.Settings, sch *schedule.Schedule, converged []float32,
) (float64, error) {
	x, err := e.Along(ctx, plansOf(set, sch), nil)
	if err != nil {
		return 0, err
	}
	var sum float64
	for i, v := range x {
		d := float64(v) - float64(converged[i])
		sum += d * d
	}
	return math.Sqrt(sum / float64(len(x))), nil
}

// plansOf makes the plans of a schedule's rows, each once; statistics are of the schedule's labels.
func plansOf(set solver.Settings, sch *schedule.Schedule) func(label int32) (*solver.Plan, error) {
	made := map[int]*solver.Plan{}
	return func(label int32) (p *solver.Plan, err error) {
		row, err := sch.Row(int(label))
		if err == nil && made[row] == nil {
			own := set
			own.StatisticsRow = row
			made[row], err = solver.New(own, sch, row)
		}
		return made[row], err
	}
}
