package command

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/anisoflight/anisoflight/base/suggest"
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

// Group is a command that only has others.
type Group struct {
	Use, Short, Long, Example string
	Specs                     []Spec // of its commands that have settings
}

// Command returns the command.
func (g Group) Command() *cobra.Command {
	cmd := &cobra.Command{
		Use: g.Use, Short: g.Short, Long: g.Long, Example: g.Example, Args: groupArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, s := range g.Specs {
		cmd.AddCommand(s.Command())
	}
	return cmd
}

// groupArgs refuses words that a command group does not know.
func groupArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var known []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			known = append(known, sub.Name())
		}
	}
	return Usagef(cmd, "unknown command %q%s", args[0], asking(args[0], known))
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
