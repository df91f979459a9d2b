package cli

import (
	"context"
	"fmt"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/anisoflight/anisoflight/flight/client"
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/cli/connect"
)

func newModel() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "model",
		Short: "List and check models, make mixtures with exact score, and draw data sets from them",
		Example: `  anisoflight model list
  anisoflight model check data/models/cifar10
  anisoflight model mixture --name digits-gmm --dataset digits
  anisoflight model draw --name known --model digits-gmm --n 10000`,
		Args: command.GroupArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, s := range []command.Spec{modelListSpec, modelCheckSpec, modelMixtureSpec, modelDrawSpec} {
		cmd.AddCommand(s.Command())
	}
	return cmd
}

var modelListSpec = command.Spec{
	Use:     "list",
	Short:   "List the models",
	Example: "  anisoflight model list --data data",
	Options: connect.FolderOptions,
	JSON:    true,
	Run: func(ctx context.Context, e command.Env) error {
		models, err := connect.List(ctx, e, (*client.Client).ListModels)
		if err != nil {
			return err
		}
		if e.JSON {
			return command.PrintJSON(e.Out, models)
		}
		t := tabwriter.NewWriter(e.Out, 0, 8, 2, ' ', 0)
		fmt.Fprintln(t, "NAME\tTYPE\tPIXELS\tCHANNELS\tCLASSES\tPARAMETERS\tSCHEDULE")
		for _, m := range models {
			width, own := m.Width, "edm"
			if width == 0 {
				width = m.Resolution
			}
			if m.Schedule != nil {
				own = m.Schedule.Basis
			}
			fmt.Fprintf(t, "%s\t%s\t%d×%d\t%d\t%d\t%d\t%s\n", m.Name, m.Type, m.Resolution, width, m.Channels, m.LabelDim,
				m.Parameters, own)
		}
		return t.Flush()
	},
}

// mixtureRequest are the fields of MakeModel.
var mixtureRequest = []command.Option{
	{Name: "name", Required: true, Usage: "`name` of the new model"},
	{Name: "dataset", Usage: "`name` of the data set whose classes it has"},
	{
		Name:  "covariance",
		Usage: "kept of each class: dct (default; the channels of each frequency), full, or a basis `name`",
	},
	{Name: "floor", Kind: command.Number, Usage: "least variance in any direction (default 1e-4)"},
	{Name: "means", Kind: command.Object, Usage: "of the components, instead of a data set: [[...],...]"},
	{Name: "covariances", Kind: command.Object, Usage: "of the components: [[[...],...],...]"},
	{Name: "weights", Kind: command.Object, Usage: "of the components (default: equal)"},
	{Name: "labels", Kind: command.Object, Usage: "classes of the components (default: none)"},
	{Name: "shape", Kind: command.Object, Usage: "[H,W,C] of an image (default [1,dimensions,1])"},
	{Name: "replace", Kind: command.Toggle, Usage: "replace a model of that name"},
}

var modelMixtureSpec = command.Spec{
	Use:   "mixture",
	Short: "Make a Gaussian mixture with exact score and serve it as a model",
	Long: `Mixture makes the laboratory's model: a mixture of normal laws, whose flow is known
exactly, of a data set's classes or of laws of one's own. Whatever works on a trained
network works on it, and there the truth is known.

Its noise can be in the subspaces that the covariances were made for: with the
default, of every dct basis; with full, of none; with a basis' name, of that one.
Images of up to 64 values take any basis.`,
	Example: `  anisoflight model mixture --name patches-gmm --dataset patches
  anisoflight model mixture --name plane --means '[[0.5,0],[-0.5,0]]' \
    --covariances '[[[0.04,0],[0,0.01]],[[0.01,0],[0,0.04]]]'`,
	Options: slices.Concat(mixtureRequest, connect.FolderOptions),
	Stores:  true,
	Run:     makeAndPrint("MakeModel", mixtureRequest, "measuring"),
}

// drawRequest are the fields of MakeDataset.
var drawRequest = []command.Option{
	{Name: "name", Required: true, Usage: "`name` of the new data set"},
	{Name: "model", Required: true, Usage: "`name` of the mixture"},
	{Name: "n", Required: true, Kind: command.Whole, Usage: "images"},
	{Name: "seed", Kind: command.Seed, Usage: "of the first image (default 0)"},
	{Name: "replace", Kind: command.Toggle, Usage: "replace a data set of that name"},
}

var modelDrawSpec = command.Spec{
	Use:     "draw",
	Short:   "Draw a data set from a mixture: images of a known law",
	Example: "  anisoflight model draw --name known --model digits-gmm --n 10000",
	Options: slices.Concat(drawRequest, connect.FolderOptions),
	Run:     makeAndPrint("MakeDataset", drawRequest, "drawing"),
}

// makeAndPrint runs an action of these fields with progress and prints its reply.
func makeAndPrint(action string, request []command.Option, doing string) func(context.Context, command.Env) error {
	return func(ctx context.Context, e command.Env) error {
		reply := map[string]any{}
		if err := connect.Perform(ctx, e, action, e.Request(request), doing, &reply); err != nil {
			return err
		}
		return command.PrintJSON(e.Out, reply)
	}
}
