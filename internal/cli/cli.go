package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/cli/schedules"
	"github.com/anisoflight/anisoflight/internal/cli/serve"
)

// Main runs the command line and returns the exit status.
func Main(args []string, stdout, stderr io.Writer) int {
	// A second signal kills the process: the first one restores the default handling.
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
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
	return exitStatus(ctx, stderr, root.ExecuteContext(ctx))
}

// exitStatus prints the error of a command, unless that is printed already, and returns the program's exit status.
func exitStatus(ctx context.Context, stderr io.Writer, err error) int {
	var usage *command.UsageError
	var exit command.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return int(exit)
	case errors.As(err, &usage):
		fmt.Fprintf(stderr, "anisoflight: %v\nSee `%s --help`.\n", err, usage.Command)
		return 2
	case errors.Is(err, command.ErrInterrupted),
		ctx.Err() != nil && (errors.Is(err, context.Canceled) || command.IsCode(err, api.Cancelled)):
		fmt.Fprintln(stderr, "anisoflight: interrupted")
		return 130
	}
	fmt.Fprintf(stderr, "anisoflight: %s\n", command.ErrorText(err))
	return 1
}

func newRoot() *cobra.Command {
	root := command.Group{
		Use:   "anisoflight",
		Short: "Diffusion models with learned anisotropic noise schedules, over Arrow Flight",
		Long: `Anisoflight trains diffusion models, learns noise schedules for them, and serves
both to notebooks over Arrow Flight.

Every setting can be given as a flag, as an environment variable ANISOFLIGHT_NAME,
or in the YAML file of --config. A flag wins over the environment, and the
environment over the file.`,
		Example: `  anisoflight doctor
  anisoflight serve --data data
  anisoflight train --name digits --config configs/digits-pretrain.yaml
  anisoflight sample --model digits --n 64 --steps 9 --out digits.png`,
		Specs: []command.Spec{serve.Spec, trainSpec, sampleSpec, fewSpec, doctorSpec, fsckSpec},
	}.Command()
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetFlagErrorFunc(command.FlagError)
	root.Version = fmt.Sprintf("anisoflight %s %s %s/%s", command.Version(), runtime.Version(), runtime.GOOS,
		runtime.GOARCH)
	root.SetVersionTemplate("{{.Version}}\n")
	for _, g := range []command.Group{modelGroup, schedules.Group, planGroup, basisGroup, serve.TokenGroup} {
		root.AddCommand(g.Command())
	}
	root.AddCommand(newData(), &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program",
		Example: "  anisoflight version",
		Args:    command.NoArgs,
		Run:     func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), root.Version) },
	})
	return root
}
