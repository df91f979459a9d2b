package cli

import (
	"fmt"

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

var modelMixtureSpec = connect.Making(command.Spec{
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
	Stores: true,
}, "MakeModel", new(api.MakeModel), "measuring", connect.PrintReply,
	command.Option{Name: "covariance", OneOf: []string{"dct", "full"}})

var modelDrawSpec = connect.Making(command.Spec{
	Use:     "draw",
	Short:   "Draw a data set from a mixture: images of a known law",
	Example: "  anisoflight model draw --name known --model digits-gmm --n 10000",
}, "MakeDataset", new(api.MakeDataset), "drawing", connect.PrintReply)
