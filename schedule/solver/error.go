package solver

import "fmt"

// Error reports which field of the settings is wrong.
type Error struct {
	Field    string // wire name of the field: solver, order, grid, steps, nfe, …
	Msg      string // goes on after the field's name: "must be at least 1, got 0"
	TooLarge bool   // a well-formed number beyond what can be served
	cause    error
}

// Error implements the error interface.
func (e *Error) Error() string { return e.Field + " " + e.Msg }

// Unwrap returns what lies behind the error, such as schedule.ErrNoEnergy, or nil.
func (e *Error) Unwrap() error { return e.cause }

func failf(field, format string, args ...any) *Error {
	return &Error{Field: field, Msg: fmt.Sprintf(format, args...)}
}

func orDefault(s *string, v string) {
	if *s == "" {
		*s = v
	}
}
