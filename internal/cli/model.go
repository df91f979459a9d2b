package cli

import (
	"fmt"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/client"
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/cli/connect"
)

var modelGroup = command.Group{
	Use:   "model",
	Short: "List and check models, make mixtures with exact score, and draw data sets from them",
	Example: `  anisoflight model list
  anisoflight model check data/models/cifar10
  anisoflight model mixture --name digits-gmm --dataset digits
  anisoflight model draw --name known --model digits-gmm --n 10000`,
	Specs: []command.Spec{
		modelListSpec, modelCheckSpec, modelMixtureSpec, modelDrawSpec,
	},
}

var modelListSpec = connect.ListSpec("models", "model", (*client.Client).ListModels,
	"NAME\tTYPE\tPIXELS\tCHANNELS\tCLASSES\tPARAMETERS\tSCHEDULE", func(m api.ModelInfo) string {
		width, own := m.Width, "edm"
		if width == 0 {
			width = m.Resolution
		}
		if m.Schedule != nil {
			own = m.Schedule.Basis
		}
		return fmt.Sprintf("%s\t%s\t%d×%d\t%d\t%d\t%d\t%s", m.Name, m.Type, m.Resolution, width, m.Channels, m.LabelDim,
			m.Parameters, own)
	})

// mixtureRequest are the fields of MakeModel.
var mixtureRequest = []command.Option{
	{Name: "name", Required: true, Usage: "`name` of the new model"},
	{Name: "dataset", Usage: "`name` of the data set whose classes it has", Names: connect.Datasets},
	{
		Name:  "covariance",
		Usage: "kept of each class: dct (default; the channels of each frequency), full, or a basis `name`",
		OneOf: []string{"dct", "full"}, Names: connect.Bases,
	},
	{Name: "floor", Kind: command.Number, Usage: "least variance in any direction", Otherwise: "1e-4"},
	{Name: "means", Kind: command.Object, Usage: "of the components, instead of a data set: [[...],...]"},
	{Name: "covariances", Kind: command.Object, Usage: "of the components: [[[...],...],...]"},
	{Name: "weights", Kind: command.Object, Usage: "of the components", Otherwise: "equal"},
	{Name: "labels", Kind: command.Object, Usage: "classes of the components", Otherwise: "none"},
	{Name: "shape", Kind: command.Object, Usage: "[H,W,C] of an image", Otherwise: "[1,dimensions,1]"},
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
	Run:     connect.Makes("MakeModel", "", mixtureRequest, "measuring", connect.PrintReply),
}

// drawRequest are the fields of MakeDataset.
var drawRequest = []command.Option{
	{Name: "name", Required: true, Usage: "`name` of the new data set"},
	{Name: "model", Required: true, Usage: "`name` of the mixture", Names: connect.Models},
	{Name: "n", Required: true, Kind: command.Whole, Usage: "images"},
	{Name: "seed", Kind: command.Seed, Usage: "of the first image", Otherwise: "0"},
	{Name: "replace", Kind: command.Toggle, Usage: "replace a data set of that name"},
}

var modelDrawSpec = command.Spec{
	Use:     "draw",
	Short:   "Draw a data set from a mixture: images of a known law",
	Example: "  anisoflight model draw --name known --model digits-gmm --n 10000",
	Options: slices.Concat(drawRequest, connect.FolderOptions),
	Run:     connect.Makes("MakeDataset", "", drawRequest, "drawing", connect.PrintReply),
}
