package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/anisoflight/anisoflight/internal/cli/command"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program",
		Example: "  anisoflight version",
		Args:    command.NoArgs,
		Run:     func(cmd *cobra.Command, _ []string) { fmt.Fprintln(cmd.OutOrStdout(), versionLine()) },
	}
}

// versionLine says which program this is, as --version prints it.
func versionLine() string {
	return fmt.Sprintf("anisoflight %s %s %s/%s", command.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
