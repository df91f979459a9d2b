package command

import (
	"errors"
	"fmt"

	"github.com/anisoflight/anisoflight/flight/api"
)

// ErrInterrupted ends a command that has kept what it could after an interrupt.
var ErrInterrupted = errors.New("interrupted")

// ExitError is the exit status of a program that has said itself what is wrong.
type ExitError int

func (s ExitError) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// Plain returns the text of a server's error without the bracketed code that the wire
// needs, and with the cause where it has not come by the wire.
func Plain(err error) string {
	var e *api.Error
	switch {
	case !errors.As(err, &e):
		return err.Error()
	case e.Code == api.Internal && e.Unwrap() != nil:
		return fmt.Sprintf("%s: %v", e.Message, e.Unwrap())
	case e.Hint != "":
		return e.Message + ". " + e.Hint
	}
	return e.Message
}

// IsCode reports whether an error of the contract has the code.
func IsCode(err error, code api.Code) bool {
	var e *api.Error
	return errors.As(err, &e) && e.Code == code
}
