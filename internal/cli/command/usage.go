package command

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/anisoflight/anisoflight/internal/base/suggest"
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

// FlagError returns the usage error of what the parser of flags refuses.
func FlagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return Usagef(cmd, "%w", err)
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, "--"+f.Name) })
	return Usagef(cmd, "%w%s", err, asking("--"+unknown.GetSpecifiedName(), known))
}

// asking returns the question after what was meant, to go on after what is wrong.
func asking(word string, known []string) string {
	if ask := suggest.DidYouMean(word, known); ask != "" {
		return "; " + ask
	}
	return ""
}

// NoArgs refuses arguments.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef(cmd, "unexpected argument %q", args[0])
	}
	return nil
}
