package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/anisoflight/anisoflight/flight/api"
)

// Main runs the command line and returns the exit status.
func Main(args []string, stdout, stderr io.Writer) int {
	// A second signal kills: after the first one the default handling is restored.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	defer stop()
	return run(ctx, args, stdout, stderr)
}

// run is Main without the process's signals, for tests.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var usage *usageError
	var exit exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return int(exit)
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "anisoflight: %v\nSee `%s --help`.\n", err, usage.command)
		return 2
	case errors.Is(err, errInterrupted), ctx.Err() != nil && isCancelled(err):
		fmt.Fprintln(stderr, "anisoflight: interrupted")
		return 130
	}
	fmt.Fprintf(stderr, "anisoflight: %s\n", plain(err))
	return 1
}

// errInterrupted ends a command that has kept what it could after an interrupt.
var errInterrupted = errors.New("interrupted")

// isCancelled reports whether an error is the consequence of an interrupt.
func isCancelled(err error) bool {
	return errors.Is(err, context.Canceled) || isCode(err, api.Cancelled)
}

// plain returns the text of a server's error without the bracketed code that the wire
// needs, and with the cause where it has not come by the wire.
func plain(err error) string {
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

// usageError is a mistake in the arguments.
type usageError struct {
	command string
	err     error
}

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(cmd *cobra.Command, format string, args ...any) error {
	return &usageError{command: cmd.CommandPath(), err: fmt.Errorf(format, args...)}
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "anisoflight",
		Short: "Diffusion models with learned anisotropic noise schedules, over Arrow Flight",
		Long: `Anisoflight trains diffusion models, learns noise schedules for them, and serves
both to notebooks over Arrow Flight.

Every setting can be given as a flag, as an environment variable ANISOFLIGHT_NAME,
or in a YAML file named by --config; the first of these that is given wins.`,
		Example: `  anisoflight doctor
  anisoflight serve --data data
  anisoflight train --name digits --config configs/digits-pretrain.yaml
  anisoflight sample --model digits --n 64 --steps 9 --out digits.png`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          commandNamed,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return usagef(cmd, "%w", err) })
	for _, s := range specs() {
		root.AddCommand(s.command())
	}
	root.AddCommand(newData(), newModel(), newSchedule(), newBasis(), newToken(), newCertificate(), newConfig(), newVersion())
	return root
}

// commandNamed refuses words that a command group does not know.
func commandNamed(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef(cmd, "unknown command %q", args[0])
	}
	return nil
}

// specs are the commands with settings.
func specs() []spec {
	return []spec{serveSpec, trainSpec, sampleSpec, compareSpec, recipeSpec(), doctorSpec}
}
