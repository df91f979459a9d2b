package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// Main runs the command line and returns the exit status: 0, 1 on failure, 2 on wrong usage.
func Main(args []string, in io.Reader, out, errs io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal kills
	defer stop()
	root := &cobra.Command{
		Use:   "anisoflight-bench",
		Short: "Measure what anisoflight costs on this machine",
		Long: `Each benchmark measures on this machine and prints its table, or with --json the numbers behind it. All
measures of a benchmark are taken in turn, round by round; tables give medians over the rounds, and quartiles in
brackets. Run them on a machine that does nothing else.`,
		SilenceErrors: true, SilenceUsage: true,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(newModel(), newEstimator(), newMemory(), newCompile(), newLower(), newService(), newRate(),
		newFlight())
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	started := false
	root.PersistentPreRun = func(*cobra.Command, []string) { started = true }
	err := root.ExecuteContext(ctx)
	switch {
	case err == nil:
		return 0
	case !started:
		fmt.Fprintf(errs, "anisoflight-bench: %v\nSee `anisoflight-bench --help`.\n", err)
		return 2
	}
	fmt.Fprintf(errs, "anisoflight-bench: %v\n", err)
	return 1
}
