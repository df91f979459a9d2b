package train

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/setting"
)

// StoppedError is returned with the row of a step after which the run has stopped of its
// own: see Config.EarlyStop. The step has been taken; going on is allowed, and begins at
// the schedule that was kept.
type StoppedError struct {
	Step   int64
	Reason string // noise or energy
	Msg    string
}

// Error implements the error interface.
func (e *StoppedError) Error() string { return fmt.Sprintf("step %d: %s", e.Step, e.Msg) }

// watch is what early stopping remembers.
type watch struct {
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

// noise adds an estimate to the window, which begins at kimg if there is none, and
// reports, at its end, whether what was learned in it is more than noise: whether the
// mean estimate d̄ = (1/n) Σ d_i is longer than its standard error √(Σ stderr_i²)/n.
func (w *watch) noise(cfg Config, d thetaGradient, row Row, kimg float64) error {
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
func (w *watch) risen(row Row) error {
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
func (w *watch) store(s *checkpoint.Run) (err error) {
	s.WindowSum = cloneTable(w.sum)
	if w.Best != nil {
		s.BestEnergies, s.BestIncrements = w.Best.energy, w.Best.increments // never written to again
	}
	s.Watch, err = json.Marshal(w)
	return err
}

// restore is the inverse of store; tables must be like one of the schedule's.
func (w *watch) restore(s *checkpoint.Run, like [][][]float64) error {
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
