package cli

import (
	"cmp"
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
	Short: "List and check models, make mixtures with exact scores, and draw data sets from them",
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
		schedule := "edm"
		if m.Schedule != nil {
			schedule = m.Schedule.Basis
		}
		return fmt.Sprintf("%s\t%s\t%d×%d\t%d\t%d\t%d\t%s", m.Name, m.Type, m.Resolution, cmp.Or(m.Width, m.Resolution),
			m.Channels, m.LabelDim, m.Parameters, schedule)
	})

var modelMixtureSpec = connect.MakeCommand(command.Spec{
	Use:   "mixture",
	Short: "Make a Gaussian mixture with exact score and serve it as a model",
	Long: `Mixture makes a model whose score is known exactly: a Gaussian mixture of a data set's
classes, or of the means and covariances that are given. It works wherever a trained
network does.

--covariance decides in which subspaces the model takes noise: dct, those of every dct
basis; full, none; the name of a basis, its own. Images of at most 64 values take every
basis.`,
	Example: `  anisoflight model mixture --name patches-gmm --dataset patches
  anisoflight model mixture --name plane --means '[[0.5,0],[-0.5,0]]' \
    --covariances '[[[0.04,0],[0,0.01]],[[0.01,0],[0,0.04]]]'`,
	Stores: true,
}, "MakeModel", new(api.MakeModel), "measuring",
	command.Option{Name: "covariance", OneOf: []string{"dct", "full"}})

var modelDrawSpec = connect.MakeCommand(command.Spec{
	Use:     "draw",
	Short:   "Draw a data set from a mixture, whose law is known",
	Example: "  anisoflight model draw --name known --model digits-gmm --n 10000",
}, "MakeDataset", new(api.MakeDataset), "drawing")

var modelCheckSpec = command.Spec{
	Use:   "check",
	Args:  "FOLDER",
	Short: "Check a model folder's weights against its configuration, without a device",
	Long: `Check reports everything that prevents the folder from being served: files that are
missing or cannot be read, and tensors that are missing, unknown, of the wrong shape or
type, or not finite. It compiles nothing and holds one tensor in memory at a time.

The exit status is 1 if anything is wrong.`,
	Example: `  anisoflight model check data/models/cifar10
  anisoflight model check --json data/models/cifar10 | jq .parameters`,
	JSON: true,
	Run:  runModelCheck,
}

// modelFault is a fault of a model folder.
type modelFault struct {
	File   string `json:"file"`
	Tensor string `json:"tensor,omitempty"`
	Reason string `json:"reason"`
}

// modelReport is what check --json prints.
type modelReport struct {
	Type       string       `json:"model_type,omitempty"`
	Parameters int          `json:"parameters,omitempty"`
	FLOPs      int64        `json:"flops,omitempty"`  // operations for one image, if the network counts them
	Config     any          `json:"config,omitempty"` // with all defaults
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

// evaluationFLOPs returns the number of floating-point operations that evaluate one image.
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
		place := f.File
		if f.Tensor != "" {
			place += ": " + f.Tensor
		}
		if _, err := fmt.Fprintf(w, "%s: %s\n", place, f.Reason); err != nil {
			return err
		}
	}
	return nil
}
