package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/client"
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/cli/connect"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/train/checkpoint"
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

var modelMixtureSpec = connect.MakeCommand(command.Spec{
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
}, "MakeModel", new(api.MakeModel), "measuring",
	command.Option{Name: "covariance", OneOf: []string{"dct", "full"}})

var modelDrawSpec = connect.MakeCommand(command.Spec{
	Use:     "draw",
	Short:   "Draw a data set from a mixture: images of a known law",
	Example: "  anisoflight model draw --name known --model digits-gmm --n 10000",
}, "MakeDataset", new(api.MakeDataset), "drawing")

var modelCheckSpec = command.Spec{
	Use:   "check",
	Args:  "FOLDER",
	Short: "Compare a model folder's weights with its configuration, without a device",
	Long: `Check says everything that keeps the folder from being served: files that are missing
or cannot be read, and each tensor that the network of config.json asks for and the
weights lack, that it does not know, or that has another shape, type or values that
are not finite. Nothing is compiled, and one tensor is in memory at a time.

The exit status is 1 if anything is wrong.`,
	Example: `  anisoflight model check data/models/cifar10
  anisoflight model check --json data/models/cifar10 | jq .parameters`,
	JSON: true,
	Run:  runModelCheck,
}

// modelFault is one thing that is wrong with a model folder.
type modelFault struct {
	File   string `json:"file"`
	Tensor string `json:"tensor,omitempty"`
	Reason string `json:"reason"`
}

// modelReport is what check --json prints.
type modelReport struct {
	Type       string       `json:"model_type,omitempty"`
	Parameters int          `json:"parameters,omitempty"`
	FLOPs      int64        `json:"flops,omitempty"`  // of an evaluation of one image, if the network counts them
	Config     any          `json:"config,omitempty"` // with every default filled in
	Faults     []modelFault `json:"faults"`
}

func runModelCheck(_ context.Context, e command.Env) error {
	net, faults := checkpoint.CheckModel(e.Args[0])
	report := modelReport{Faults: []modelFault{}}
	if net != nil {
		report.Type, report.Parameters, report.Config = net.Shape().Type, net.ParamCount(), net
		if raw, ok := net.(kernels.RawNetwork); ok {
			flops, err := evaluationFLOPs(raw)
			if err != nil {
				return err
			}
			report.FLOPs = flops
		}
	}
	for _, err := range faults {
		fault := modelFault{Reason: err.Error()}
		var in *checkpoint.Error
		if errors.As(err, &in) {
			fault = modelFault{in.File, in.Tensor, in.Msg}
		}
		report.Faults = append(report.Faults, fault)
	}
	err := e.Show(report, report.print)
	if err == nil && len(faults) > 0 {
		err = fmt.Errorf("%s cannot be served", e.Args[0])
	}
	return err
}

// evaluationFLOPs counts the operations of an evaluation of one image.
func evaluationFLOPs(net kernels.Network) (int64, error) {
	dev, err := device.Open(device.Config{Plugin: "go"})
	if err != nil {
		return 0, err
	}
	defer dev.Close()
	m, err := kernels.NewModel(dev, net, nil)
	if err != nil {
		return 0, err
	}
	cost, err := m.EvaluateCost(1)
	return cost.FLOPs, err
}

func (r modelReport) print(w io.Writer) error {
	if len(r.Faults) == 0 {
		_, err := fmt.Fprintf(w, "%s, %d parameters: every tensor fits\n", r.Type, r.Parameters)
		return err
	}
	for _, f := range r.Faults {
		what := f.File
		if f.Tensor != "" {
			what += ": " + f.Tensor
		}
		if _, err := fmt.Fprintf(w, "%s: %s\n", what, f.Reason); err != nil {
			return err
		}
	}
	return nil
}
