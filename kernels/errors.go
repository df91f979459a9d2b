package kernels

import (
	"errors"
	"fmt"
	"math"
)

// InputError reports an argument that does not fit the model. Nothing has been computed when it is returned.
type InputError struct {
	Field string // name of the argument in this package
	Msg   string // continues after the field: "must hold 64 values, got 63"
}

func (e *InputError) Error() string { return "kernels: " + e.Field + " " + e.Msg }

func inputf(field, format string, args ...any) error {
	return &InputError{Field: field, Msg: fmt.Sprintf(format, args...)}
}

// ErrReleased is returned when weights are used after their last Release.
var ErrReleased = errors.New("kernels: weights were released")

// ErrClosed is returned when a trajectory or a trainer is used after Close.
var ErrClosed = errors.New("kernels: used after Close")

// ErrStateLost is returned by a Trainer whose state was lost in a failed run on the device.
var ErrStateLost = errors.New("kernels: the training state was lost in a failed step; restore it from the last " +
	"exported state")

// checkLength requires n values.
func checkLength(field string, got, want int) error {
	if got != want {
		return inputf(field, "must hold %d values, got %d", want, got)
	}
	return nil
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
