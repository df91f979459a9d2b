package cli

import (
	"github.com/spf13/cobra"

	"github.com/anisoflight/anisoflight/internal/cli/command"
)

// pythonCommand returns the command that runs a module of the Python package with all arguments, --help included.
func pythonCommand(cmd cobra.Command, module string) *cobra.Command {
	cmd.Long += "\n\nIt runs python -m " + module + ". The Python package must be installed;\n" +
		"ANISOFLIGHT_PYTHON names the interpreter. --help lists the flags."
	cmd.DisableFlagParsing = true
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return command.Python(cmd, module, args...) }
	return &cmd
}

func newData() *cobra.Command {
	return pythonCommand(cobra.Command{
		Use:   "data",
		Short: "Inspect images in many formats, and convert them to data sets",
		Long:  "Data reads images; docs/data.md has an example of each format.",
		Example: `  anisoflight data --help
  anisoflight data inspect downloads/cifar-10-python.tar.gz
  anisoflight data convert downloads/cifar-10-python.tar.gz --name cifar10
  anisoflight data convert downloads/imagenet/train --out imagenet-64x64.zip --resolution 64 --transform center-crop`,
	}, "anisoflight.data")
}
