package command

import (
	"fmt"

	"github.com/spf13/cobra"
)

// UsageError is a mistake in the arguments.
type UsageError struct {
	Command string
	err     error
}

func (e *UsageError) Error() string { return e.err.Error() }
func (e *UsageError) Unwrap() error { return e.err }

// Usagef returns a UsageError of the command.
func Usagef(cmd *cobra.Command, format string, args ...any) error {
	return &UsageError{Command: cmd.CommandPath(), err: fmt.Errorf(format, args...)}
}

// GroupArgs refuses words that a command group does not know.
func GroupArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef(cmd, "unknown command %q", args[0])
	}
	return nil
}

// NoArgs refuses arguments.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef(cmd, "unexpected argument %q", args[0])
	}
	return nil
}
