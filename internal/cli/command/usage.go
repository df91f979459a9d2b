package command

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"

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

// FlagError returns the usage error for an error of the flag parser, with the nearest flag if the flag is unknown.
func FlagError(cmd *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return Usagef(cmd, "%w", err)
	}
	if words := cmd.Flags().Args(); cmd.HasSubCommands() && len(words) > 0 {
		return groupArgs(cmd, words) // the flag is that of a command that there is not
	}
	var known []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, "--"+f.Name) })
	return Usagef(cmd, "%w%s", err, didYouMean("--"+unknown.GetSpecifiedName(), known))
}

// didYouMean returns the end of an error about an unknown word: the nearest known word, or nothing.
func didYouMean(word string, known []string) string {
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

// ErrInterrupted is the error of a command that has ended cleanly after an interrupt.
var ErrInterrupted = errors.New("interrupted")

// ExitError is the exit status of a program that has printed its error itself.
type ExitError int

func (s ExitError) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// ErrorText returns the text of an error without its code in brackets. An internal error of this process includes its
// cause.
func ErrorText(err error) string {
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

// IsCode reports whether err is an [api.Error] with the code.
func IsCode(err error, code api.Code) bool {
	var e *api.Error
	return errors.As(err, &e) && e.Code == code
}

// Group is a command that only has subcommands.
type Group struct {
	Use, Short, Long, Example string
	Specs                     []Spec // subcommands that have settings
}

// Command returns the cobra command.
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

// groupArgs refuses words that are not subcommands.
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
	if instead, ok := gone[cmd.Name()+" "+args[0]]; ok {
		return Usagef(cmd, "%q is gone since 0.1: %s", args[0], instead)
	}
	return Usagef(cmd, "unknown command %q%s", args[0], didYouMean(args[0], known))
}

// gone has what to type in place of the commands of 0.1, by the group and the command.
var gone = map[string]string{
	"schedule bench":      "measure samplers with python -m anisoflight.fid calc; docs/fid.md",
	"schedule nodes":      "search levels and solver on a model with anisoflight few; docs/schedules.md",
	"schedule few":        "type anisoflight few, which writes a plan, and sample with --plan; docs/schedules.md",
	"schedule fit":        "anisoflight few fits coefficients, too, and writes a plan; docs/schedules.md",
	"anisoflight compare": "measure samplers with python -m anisoflight.fid calc --metrics ode-error; docs/fid.md",
	"anisoflight advise": "data inspect prints the standard deviation, T and c of the data; schedule predict compares " +
		"subspaces, few searches a sampler",
}

// Release is the version of the tree, set by the program.
var Release = "unknown"

// Version returns the version of this build: Release, and between releases the commit where Go knows it, such as
// 0.2.0.dev0+g1a2b3c4, with .dirty after changes that are not committed.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return Release
	}
	return versionAt(Release, info.Settings)
}

func versionAt(number string, settings []debug.BuildSetting) string {
	built := map[string]string{}
	for _, s := range settings {
		built[s.Key] = s.Value
	}
	commit := built["vcs.revision"]
	if !strings.Contains(number, ".dev") || len(commit) < 7 {
		return number
	}
	number += "+g" + commit[:7]
	if built["vcs.modified"] == "true" {
		number += ".dirty"
	}
	return number
}
