package cli

import (
	"github.com/spf13/cobra"

	"github.com/anisoflight/anisoflight/internal/cli/command"
)

// pythonCommand makes a command that is a module of the Python package: its words, --help among them, are the module's.
func pythonCommand(cmd cobra.Command, module string) *cobra.Command {
	cmd.Long += "\n\nIt is python -m " + module + ": the Python package must be installed (ANISOFLIGHT_PYTHON\n" +
		"names the interpreter). --help lists its flags."
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

func newCompare() *cobra.Command {
	return pythonCommand(cobra.Command{
		Use:   "compare",
		Short: "Measure solvers, grids and schedules side by side",
		Long: `Compare samples with every solver on every grid of every schedule at every number of
evaluations, from the same latents, and prints a row for each, as Client.compare does.`,
		Example: `  anisoflight compare --help
  anisoflight compare --model digits --solvers heun:second_point=endpoint,ipndm,ab --nfe 5,9 --grids schedule,edm`,
	}, "anisoflight.compare")
}

func newAdvise() *cobra.Command {
	return pythonCommand(cobra.Command{
		Use:   "advise",
		Short: "Recommend settings of training, schedules and samplers for a data set",
		Long: `Advise measures a data set, and a model on it, and prints settings with the
measurement behind each, as Client.advise does.`,
		Example: `  anisoflight advise --help
  anisoflight advise digits
  anisoflight advise digits digits --picture advice.png`,
	}, "anisoflight.advise")
}
