package train

import (
	"fmt"
	"math"

	"github.com/anisoflight/anisoflight/internal/base/setting"
)

// DivergedError is returned with the row of a step after which the run has diverged. The step has been taken. The state
// can be read, and further steps are allowed.
type DivergedError struct {
	Step int64
	Msg  string
}

// Error implements the error interface.
func (e *DivergedError) Error() string { return fmt.Sprintf("step %d: %s", e.Step, e.Msg) }

// StateError is returned for a stored state that cannot be resumed.
type StateError struct{ Msg string }

// Error implements the error interface.
func (e *StateError) Error() string { return "train: stored state: " + e.Msg }

func stateError(format string, args ...any) error {
	return &StateError{Msg: fmt.Sprintf(format, args...)}
}

// The limits of a guard.
const (
	guardBlowUp  = 5.0  // ratio of the average loss to its minimum
	guardSkips   = 20   // consecutive steps whose gradient is not finite
	guardSamples = 2048 // fewest samples in the average of the loss
	guardSteps   = 20   // fewest steps in the average of the loss
)

// guard detects a run that diverges: gradients that stay non-finite, or an exponential average of the loss far above
// its minimum. The full estimator diverges like this if the network does not see the ratios of the g_j.
type guard struct {
	decay  float64
	steps  int
	weight float64 // of the steps in sum; tends to 1
	sum    float64 // average·weight
	lowest float64 // average
	skips  int
}

func newGuard(batch int) guard {
	steps := math.Max(guardSteps, guardSamples/float64(batch))
	return guard{decay: 1 - 1/steps, lowest: math.Inf(1)}
}

// check returns a *DivergedError if the run has diverged with this step. It then starts again, so that each fault is
// reported once.
func (w *guard) check(row Row, skipped bool) error {
	if skipped || !setting.Finite(row.Loss) {
		if w.skips++; w.skips < guardSkips {
			return nil
		}
		w.skips = 0
		return &DivergedError{
			row.Step,
			fmt.Sprintf("the gradients of %d steps in a row were not finite; begin again with lower learning rates", guardSkips),
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
		fmt.Sprintf("the loss has risen from %.4g to %.4g; begin again with lower learning rates or, if the stage is "+
			"anisotropic, with ratio_embedding", w.lowest, average),
	}
	*w = guard{decay: w.decay, lowest: math.Inf(1)}
	return err
}
