package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

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
