package cli

import (
	"github.com/spf13/cobra"

	"github.com/anisoflight/anisoflight/internal/cli/command"
)

// newData makes the command whose words, --help among them, are those of the Python package's own.
func newData() *cobra.Command {
	return &cobra.Command{
		Use:   "data",
		Short: "Inspect images in many formats, and convert them to data sets",
		Long: `Data is python -m anisoflight.data: the Python package must be installed
(ANISOFLIGHT_PYTHON names the interpreter). docs/data.md has an example of each format.`,
		Example: `  anisoflight data --help
  anisoflight data inspect downloads/cifar-10-python.tar.gz
  anisoflight data convert downloads/cifar-10-python.tar.gz --name cifar10
  anisoflight data convert downloads/imagenet/train --out imagenet-64x64.zip --resolution 64 --transform center-crop`,
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			e := command.Env{Cmd: cmd, Out: cmd.OutOrStdout(), Err: cmd.ErrOrStderr()}
			python, err := command.Python(cmd.Context(), e, "anisoflight.data", args...)
			if err != nil {
				return err
			}
			return command.Wait(cmd.Context(), python)
		},
	}
}
