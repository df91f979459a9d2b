package cli

import (
	"context"
	"fmt"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/anisoflight/anisoflight/flight/client"
)

func newModel() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "model",
		Short: "List and check models, make mixtures with exact score, and draw data sets from them",
		Example: `  anisoflight model list
  anisoflight model check data/models/cifar10
  anisoflight model mixture --name digits-gmm --dataset digits
  anisoflight model draw --name known --model digits-gmm --n 10000`,
		Args: commandNamed,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, s := range []spec{modelListSpec, modelCheckSpec, modelMixtureSpec, modelDrawSpec} {
		cmd.AddCommand(s.command())
	}
	return cmd
}

var modelListSpec = spec{
	use:     "list",
	short:   "List the models",
	example: "  anisoflight model list --data data",
	options: folderOptions,
	json:    true,
	run: func(ctx context.Context, e env) error {
		models, err := list(ctx, e, (*client.Client).ListModels)
		if err != nil {
			return err
		}
		if e.json {
			return printJSON(e.out, models)
		}
		t := tabwriter.NewWriter(e.out, 0, 8, 2, ' ', 0)
		fmt.Fprintln(t, "NAME\tTYPE\tPIXELS\tCHANNELS\tCLASSES\tPARAMETERS\tSCHEDULE")
		for _, m := range models {
			width, own := m.Width, "edm"
			if width == 0 {
				width = m.Resolution
			}
			if m.Schedule != nil {
				own = m.Schedule.Basis
			}
			fmt.Fprintf(t, "%s\t%s\t%d×%d\t%d\t%d\t%d\t%s\n", m.Name, m.Type, m.Resolution, width, m.Channels, m.LabelDim, m.Parameters, own)
		}
		return t.Flush()
	},
}

// mixtureRequest are the fields of MakeModel.
var mixtureRequest = []option{
	{name: "name", needed: true, usage: "`name` of the new model"},
	{name: "dataset", usage: "`name` of the data set whose classes it has"},
	{name: "covariance", usage: "kept of each class: dct (default; the channels of each frequency), full, or a basis `name`"},
	{name: "floor", kind: number, usage: "least variance in any direction (default 1e-4)"},
	{name: "means", kind: object, usage: "of the components, instead of a data set: [[...],...]"},
	{name: "covariances", kind: object, usage: "of the components: [[[...],...],...]"},
	{name: "weights", kind: object, usage: "of the components (default: equal)"},
	{name: "labels", kind: object, usage: "classes of the components (default: none)"},
	{name: "shape", kind: object, usage: "[H,W,C] of an image (default [1,dimensions,1])"},
	{name: "replace", kind: toggle, usage: "replace a model of that name"},
}

var modelMixtureSpec = spec{
	use:   "mixture",
	short: "Make a Gaussian mixture with exact score and serve it as a model",
	long: `Mixture makes the laboratory's model: a mixture of normal laws, whose flow is known
exactly, of a data set's classes or of laws of one's own. Whatever works on a trained
network works on it, and there the truth is known.

Its noise can be in the subspaces that the covariances were made for: with the
default, of every dct basis; with full, of none; with a basis' name, of that one.
Images of up to 64 values take any basis.`,
	example: `  anisoflight model mixture --name patches-gmm --dataset patches
  anisoflight model mixture --name plane --means '[[0.5,0],[-0.5,0]]' --covariances '[[[0.04,0],[0,0.01]],[[0.01,0],[0,0.04]]]'`,
	options: slices.Concat(mixtureRequest, folderOptions),
	stores:  true,
	run:     makeAndPrint("MakeModel", mixtureRequest, "measuring"),
}

// drawRequest are the fields of MakeDataset.
var drawRequest = []option{
	{name: "name", needed: true, usage: "`name` of the new data set"},
	{name: "model", needed: true, usage: "`name` of the mixture"},
	{name: "n", needed: true, kind: whole, usage: "images"},
	{name: "seed", kind: seed, usage: "of the first image (default 0)"},
	{name: "replace", kind: toggle, usage: "replace a data set of that name"},
}

var modelDrawSpec = spec{
	use:     "draw",
	short:   "Draw a data set from a mixture: images of a known law",
	example: "  anisoflight model draw --name known --model digits-gmm --n 10000",
	options: slices.Concat(drawRequest, folderOptions),
	run:     makeAndPrint("MakeDataset", drawRequest, "drawing"),
}

// makeAndPrint runs an action of these fields with progress and prints its reply.
func makeAndPrint(action string, request []option, doing string) func(context.Context, env) error {
	return func(ctx context.Context, e env) error {
		reply := map[string]any{}
		if err := perform(ctx, e, action, e.request(request), doing, &reply); err != nil {
			return err
		}
		return printJSON(e.out, reply)
	}
}
