package start

import "fmt"

// Error reports a field of a request or of a file that cannot be used.
type Error struct {
	Field    string // dataset, covariance, rank, cuts, shrinkage, basis, tensor names, …
	Msg      string // goes on after the field's name
	TooLarge bool   // a well-formed request beyond what is served
}

// Error implements the error interface.
func (e *Error) Error() string { return e.Field + " " + e.Msg }

func failf(field, format string, args ...any) *Error {
	return &Error{Field: field, Msg: fmt.Sprintf(format, args...)}
}

func largef(field, format string, args ...any) *Error {
	return &Error{Field: field, Msg: fmt.Sprintf(format, args...), TooLarge: true}
}
