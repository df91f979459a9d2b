package cli

import "github.com/spf13/cobra"

func newBench() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure what this machine makes of the programs",
		Long: `Bench measures on this machine. Each bench prints its table, and with --json the
numbers behind it.`,
		Example: "  anisoflight bench estimator",
		Args:    commandNamed,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, s := range benchSpecs() {
		cmd.AddCommand(s.command())
	}
	return cmd
}

// benchSpecs are the benches.
func benchSpecs() []spec {
	return []spec{benchEstimatorSpec, benchFlightSpec, benchModelSpec, benchServiceSpec, benchCompileSpec}
}
