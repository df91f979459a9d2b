package command

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/anisoflight/anisoflight/flight/api"
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

// version is set by the linker (see the Makefile).
var version string

// Version says which build this is: the linker's word, else the module's version
// or commit as the Go tool recorded it.
func Version() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return s.Value[:12]
		}
	}
	return "unknown"
}
