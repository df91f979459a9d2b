package train

import "fmt"

// ConfigError says which field of a configuration cannot be used, and what to do.
type ConfigError struct {
	Field string // its name in files and requests
	Msg   string
}

// Error implements the error interface.
func (e *ConfigError) Error() string { return fmt.Sprintf("field %q: %s", e.Field, e.Msg) }

func fieldf(field, format string, args ...any) error {
	return &ConfigError{Field: field, Msg: fmt.Sprintf(format, args...)}
}

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
