// Package setting checks the settings of runs and of passes over data: one form of error, and defaults for what is left
// at zero.
package setting

import (
	"fmt"
	"math"

	"github.com/anisoflight/anisoflight/internal/base/suggest"
)

// Error says which field of a configuration cannot be used, and what to do.
type Error struct {
	Field string // its name in files and requests
	Msg   string // goes on after the field's name: must be positive, got -3
}

// Error implements the error interface.
func (e *Error) Error() string { return e.Field + " " + e.Msg }

// Errorf returns the *[Error] of a field.
func Errorf(field, format string, args ...any) error {
	return &Error{Field: field, Msg: fmt.Sprintf(format, args...)}
}

// OneOf returns the *[Error] of a field whose value is none of those allowed, or nil.
func OneOf(field, value string, allowed ...string) error {
	if wrong := suggest.OneOf(value, allowed); wrong != "" {
		return &Error{Field: field, Msg: wrong}
	}
	return nil
}

// Default sets *v to its default where it is zero.
func Default[T comparable](v *T, by T) {
	var zero T
	if *v == zero {
		*v = by
	}
}

// Positive reports whether x is positive and finite.
func Positive(x float64) bool { return x > 0 && Finite(x) }

// Finite reports whether x is neither infinite nor NaN.
func Finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
