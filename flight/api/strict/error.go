package strict

import (
	"errors"
	"fmt"
)

// Error says what is wrong with a request, in words for who sent it.
type Error struct {
	TooLarge bool   // well formed, but larger than any server could serve
	Message  string // one sentence, without its full stop
	Hint     string // what to do; may be empty
	cause    error
}

// Error implements the error interface.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause; nil for none.
func (e *Error) Unwrap() error { return e.cause }

func (e *Error) hint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

func errorf(format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Message: err.Error(), cause: errors.Unwrap(err)}
}

func tooLarge(format string, args ...any) *Error {
	e := errorf(format, args...)
	e.TooLarge = true
	return e
}

// WrongType returns the error of a value that is of another type than is wanted there.
func WrongType(at *Place, want string, v Value) error {
	return errorf("%s must be %s, got %s", at, want, Describe(v))
}
