package train

import "fmt"

// DivergedError is returned with the row of a step after which the run looks lost.
// The step has been taken, and the state can still be read; going on is allowed.
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
