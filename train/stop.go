package train

import (
	"context"
	"encoding/json"
	"fmt"
	"math"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/passes"
	"github.com/anisoflight/anisoflight/train/setting"
)

// The values of Config.EarlyStop.
const (
	StopNone   = "none"
	StopNoise  = "noise"
	StopEnergy = "energy"
	StopBoth   = "both"
)

// Stops lists the values of Config.EarlyStop.
var Stops = []string{StopNone, StopNoise, StopEnergy, StopBoth}

// StoppedError is returned with the row of a step after which the run has stopped of its own: see Config.EarlyStop. The
// step has been taken; going on is allowed, and begins at the schedule that was kept.
type StoppedError struct {
	Step   int64
	Reason string // noise or energy
	Msg    string
}

// Error implements the error interface.
func (e *StoppedError) Error() string { return fmt.Sprintf("step %d: %s", e.Step, e.Msg) }

// earlyStop is what early stopping remembers.
type earlyStop struct {
	NextEval  float64       `json:"next_eval_kimg"`
	Best      *bestSchedule `json:"best,omitempty"` // of lowest energy; nil before the first evaluation
	WindowEnd float64       `json:"window_end_kimg"`
	Steps     int           `json:"window_steps"`
	Variance  float64       `json:"window_variance"` // Σ of the estimates' squared standard errors

	sum [][][]float64 // of the estimates in the window; nil before there is one
}

// Best is where the energy on the fixed evaluation set was lowest.
type Best struct {
	Step   int64   `json:"step"` // after which the schedule stood so
	Kimg   float64 `json:"kimg"`
	Energy float64 `json:"energy"`
}

// bestSchedule is the schedule of lowest energy.
type bestSchedule struct {
	Best
	energy     []float64     // sample by sample
	increments [][][]float64 // of ln g
}

// noise adds an estimate to the window, which begins at kimg if there is none, and reports, at its end, whether what
// was learned in it is more than noise: whether the mean estimate d̄ = (1/n) Σ d_i is longer than its standard error
// √(Σ stderr_i²)/n.
func (w *earlyStop) noise(cfg Config, d thetaGradient, row Row, kimg float64) error {
	if !cfg.stopsBy(StopNoise) || !setting.Finite(d.stderr) {
		return nil
	}
	if w.sum == nil {
		w.sum, w.Steps, w.Variance = zerosLike(d.mean), 0, 0
		w.WindowEnd = kimg + cfg.EarlyStopWindow
	}
	for i, row := range d.mean {
		for j, sub := range row {
			for k, v := range sub {
				w.sum[i][j][k] += v
			}
		}
	}
	w.Steps++
	w.Variance += d.stderr * d.stderr
	if row.Kimg < w.WindowEnd*(1-1e-12) {
		return nil
	}
	n := float64(w.Steps)
	norm, stderr := math.Sqrt(dotTables(w.sum, w.sum))/n, math.Sqrt(w.Variance)/n
	w.sum = nil
	if norm > stderr {
		return nil
	}
	return &StoppedError{row.Step, StopNoise, fmt.Sprintf(
		"the mean gradient of the schedule over the last %g kimg, %.3g, is below its standard error, %.3g: there is "+
			"nothing left to learn at this batch and window",
		cfg.EarlyStopWindow, norm, stderr)}
}

// risen returns an error where the evaluation in row shows a rise of the energy.
func (w *earlyStop) risen(row Row) error {
	if !(row.EvalRise > riseBound*row.EvalRiseStderr) {
		return nil
	}
	best := w.Best
	return &StoppedError{row.Step, StopEnergy, fmt.Sprintf(
		"the energy on the evaluation set has risen from %.4g (step %d) to %.4g, by %.3g ± %.2g; the schedule of step %d "+
			"is kept. Lower schedule_lr or, if the stage is anisotropic, give the network ratio_embedding",
		best.Energy, best.Step, row.EvalEnergy, row.EvalRise, row.EvalRiseStderr, best.Step)}
}

// store adds what early stopping remembers to a state.
func (w *earlyStop) store(s *checkpoint.Run) (err error) {
	s.WindowSum = cloneTable(w.sum)
	if w.Best != nil {
		s.BestEnergies, s.BestIncrements = w.Best.energy, w.Best.increments // never written to again
	}
	s.Watch, err = json.Marshal(w)
	return err
}

// restore is the inverse of store; tables must be like one of the schedule's.
func (w *earlyStop) restore(s *checkpoint.Run, like [][][]float64) error {
	if s.Watch == nil {
		return nil // a state of an older program
	}
	if err := json.Unmarshal(s.Watch, w); err != nil {
		return stateError("early stop: %v", err)
	}
	if w.sum = cloneTable(s.WindowSum); w.sum != nil && !sameTable(w.sum, like) {
		return stateError("the window of gradients does not fit the schedule")
	}
	if w.Best == nil {
		return nil
	}
	w.Best.energy, w.Best.increments = s.BestEnergies, s.BestIncrements
	if len(w.Best.energy) == 0 || !sameTable(w.Best.increments, like) {
		return stateError("the best schedule is not whole")
	}
	return nil
}

// riseBound is how many standard errors above the lowest energy count as a rise.
const riseBound = 3

// DivergedError is returned with the row of a step after which the run looks lost. The step has been taken, and the
// state can still be read; going on is allowed.
type DivergedError struct {
	Step int64
	Msg  string
}

// Error implements the error interface.
func (e *DivergedError) Error() string { return fmt.Sprintf("step %d: %s", e.Step, e.Msg) }

// StateError says why a stored state cannot be resumed.
type StateError struct{ Msg string }

// Error implements the error interface.
func (e *StateError) Error() string { return "train: stored state: " + e.Msg }

func stateError(format string, args ...any) error {
	return &StateError{Msg: fmt.Sprintf(format, args...)}
}

// The limits of a guard.
const (
	guardBlowUp  = 5.0  // times the lowest smoothed loss
	guardSkips   = 20   // steps in a row whose gradient is not finite
	guardSamples = 2048 // that the loss is smoothed over, at least
	guardSteps   = 20   // that the loss is smoothed over, at least
)

// guard notices when a run goes wrong: gradients that stay non-finite, or a loss, as an exponential average, far above
// the lowest it has been. The full estimator diverges so where the network does not see the ratios of the g_j.
type guard struct {
	decay  float64
	steps  int
	weight float64 // of what average holds; 1 in the long run
	sum    float64 // average·weight
	lowest float64 // of the average, once it is smooth
	skips  int
}

func newGuard(batch int) guard {
	over := math.Max(guardSteps, guardSamples/float64(batch))
	return guard{decay: 1 - 1/over, lowest: math.Inf(1)}
}

// check takes note of a step and returns a *DivergedError if the run looks lost; it then starts again, so that each
// fault is reported once.
func (w *guard) check(row Row, skipped bool) error {
	if skipped || !setting.Finite(row.Loss) {
		if w.skips++; w.skips < guardSkips {
			return nil
		}
		w.skips = 0
		return &DivergedError{
			row.Step,
			fmt.Sprintf("the gradients of %d steps in a row were not finite; lower the learning rates", guardSkips),
		}
	}
	w.skips = 0
	w.steps++
	w.sum = w.decay*w.sum + (1-w.decay)*row.Loss
	w.weight = w.decay*w.weight + (1 - w.decay)
	average := w.sum / w.weight
	if float64(w.steps)*(1-w.decay) < 1 {
		return nil
	}
	w.lowest = math.Min(w.lowest, average)
	if average <= guardBlowUp*w.lowest {
		return nil
	}
	err := &DivergedError{
		row.Step,
		fmt.Sprintf("the loss has risen from %.4g to %.4g; lower the learning rates or, if the stage is anisotropic, give "+
			"the network ratio_embedding", w.lowest, average),
	}
	*w = guard{decay: w.decay, lowest: math.Inf(1)}
	return err
}

// evaluate returns the energy of a schedule on the fixed evaluation set, under the network as it would be saved, sample
// by sample.
func (r *Run) evaluate(ctx context.Context, s *schedule.Schedule) ([]float64, error) {
	w, err := r.trainer.Publish(ctx)
	if err != nil {
		return nil, err
	}
	defer w.Release()
	return passes.Energies(ctx, r.model, w, r.data, s, passes.EnergySettings{
		Samples: r.cfg.EvalSamples, C: r.cfg.C, Seed: r.cfg.Seed, Weight: r.weights.weight,
	})
}

// watchEnergy evaluates the schedule if it is due, before the step of row.
func (r *Run) watchEnergy(ctx context.Context, row *Row) error {
	if !r.cfg.stopsBy(StopEnergy) {
		return nil
	}
	kimg := float64(r.seen) / 1000
	if r.early.Best != nil && kimg < r.early.NextEval {
		return nil
	}
	s := r.published()
	energy, err := r.evaluate(ctx, s)
	if err != nil {
		return err
	}
	r.early.NextEval = kimg + r.cfg.EvalEvery
	row.EvalEnergy = passes.Mean(energy)
	best := r.early.Best
	if best != nil {
		d := make([]float64, len(energy))
		for i := range d {
			d[i] = energy[i] - best.energy[i]
		}
		row.EvalRise, row.EvalRiseStderr = passes.StratifiedMean(d)
	}
	if best == nil || row.EvalEnergy < best.Energy {
		r.early.Best = &bestSchedule{Best{r.step, kimg, row.EvalEnergy}, energy, increments(s)}
	}
	return nil
}

// Best returns where the energy was lowest; nil before anything was evaluated.
func (r *Run) Best() *Best {
	if r.early.Best == nil {
		return nil
	}
	best := r.early.Best.Best
	return &best
}
