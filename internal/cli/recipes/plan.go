package recipes

import (
	"context"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"

	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/cli/connect"
	"github.com/anisoflight/anisoflight/internal/recipe"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// Plan is what a recipe would do.
type Plan struct {
	Recipe     string      `json:"recipe"`
	Dataset    string      `json:"dataset"`
	Images     int         `json:"images"`
	Shape      []int       `json:"shape"`
	Classes    int         `json:"classes"`
	Network    string      `json:"network"` // the model that holds it
	Type       string      `json:"type"`
	Parameters int         `json:"parameters"`
	FLOPs      int64       `json:"flops"` // of the network, on one image
	Rate       float64     `json:"flops_per_second"`
	Memory     int64       `json:"memory,omitempty"` // bytes of the device; 0: unknown
	Stages     []stagePlan `json:"stages"`
	Serve      string      `json:"serve"` // command of the server that the stages reference and fid ask
	Hours      float64     `json:"hours"` // of all stages
}

type stagePlan struct {
	Kind     recipe.Kind    `json:"kind"`
	Makes    string         `json:"makes,omitempty"`
	Command  string         `json:"command"`
	After    []int          `json:"after"`              // stages that must have ended before, by their places from 0
	Settings map[string]any `json:"settings,omitempty"` // of a run, with every default
	Cost     *recipe.Cost   `json:"cost,omitempty"`
}

// printPlans prints what recipes would do.
func printPlans(ctx context.Context, e command.Env, recipes []*recipe.Recipe) error {
	on, err := hardware(ctx, e)
	if err != nil {
		return err
	}
	counter, err := device.Open(device.Config{Plugin: "go", Logger: e.Log}) // it draws programs and runs none
	if err != nil {
		return err
	}
	defer counter.Close()
	plans := []Plan{}
	for _, r := range recipes {
		p, err := planOf(e, r, counter, on)
		if err != nil {
			return err
		}
		plans = append(plans, p)
	}
	return e.Show(plans, func(w io.Writer) error {
		for i, p := range plans {
			if i > 0 {
				fmt.Fprintln(w)
			}
			if err := p.print(w); err != nil {
				return err
			}
		}
		return nil
	})
}

// hardware is what costs are estimated for: what is given, else this machine's device, with
// the rate that it reaches in a large matrix product.
func hardware(ctx context.Context, e command.Env) (on recipe.Hardware, err error) {
	on = recipe.Hardware{Rate: e.Number("flops_per_second"), Memory: int64(e.Number("memory") * (1 << 30))}
	for _, name := range []string{"flops_per_second", "memory"} {
		if v := e.Get(name); v.Given && e.Number(name) <= 0 {
			return on, command.Usagef(e.Cmd, "--%s must be positive, got %g", v.Flag(), e.Number(name))
		}
	}
	if on.Rate > 0 {
		return on, nil
	}
	dev, err := connect.OpenDevice(e)
	if err != nil {
		return on, err
	}
	defer dev.Close()
	if on.Memory == 0 {
		on.Memory, _ = dev.Available()
	}
	on.Rate, err = kernels.MatmulPeak(ctx, dev, kernels.Float32)
	return on, err
}

func planOf(e command.Env, r *recipe.Recipe, counter *device.Device, on recipe.Hardware) (Plan, error) {
	net, err := r.Net()
	if err != nil {
		return Plan{}, err
	}
	d, c := r.Dataset, net.Config()
	p := Plan{
		Recipe: r.File, Dataset: r.Name, Images: d.Images, Shape: []int{d.Resolution, d.Resolution, d.Channels},
		Classes: d.Classes,
		Network: r.NetworkModel(), Type: c.ModelType, Parameters: net.ParamCount(), FLOPs: net.FLOPs(), Rate: on.Rate,
		Memory: on.Memory,
		Serve:  serveCommand(place(e, defaultServer)),
	}
	stages := r.Stages(place(e, defaultServer))
	after := recipe.After(stages)
	for i, s := range stages {
		sp := stagePlan{Kind: s.Kind, Makes: s.Makes, Command: s.String(), After: after[i]}
		if sp.Settings, err = s.Resolved(); err != nil {
			return p, err
		}
		cost, counted, err := r.Cost(counter, s, on)
		if err != nil {
			return p, err
		}
		if counted {
			sp.Cost = &cost
			p.Hours += cost.Hours
		}
		p.Stages = append(p.Stages, sp)
	}
	return p, nil
}

func (p Plan) print(w io.Writer) error {
	fmt.Fprintf(w, "recipe %s\n", p.Recipe)
	classes := "without classes"
	if p.Classes > 0 {
		classes = fmt.Sprintf("in %d classes", p.Classes)
	}
	fmt.Fprintf(w, "data set %s: %d images of %d×%d×%d, %s\n", p.Dataset, p.Images, p.Shape[0], p.Shape[1], p.Shape[2],
		classes)
	fmt.Fprintf(w, "network %s: %s, %d parameters, %.4g GFLOP per image\n", p.Network, p.Type, p.Parameters,
		float64(p.FLOPs)/1e9)
	room := ""
	if p.Memory > 0 {
		room = fmt.Sprintf(" and %.3g GiB", float64(p.Memory)/(1<<30))
	}
	fmt.Fprintf(w, "\nestimates for %.4g TFLOP/s%s, if all of the rate were reached; half of it is a good share\n",
		p.Rate/1e12, room)
	t := command.NewTable(w, "STAGE\tMAKES\tIMAGES\tGFLOP/IMAGE\tIMAGES/S\tHOURS\tON THE DEVICE")
	for i, s := range p.Stages {
		if c := s.Cost; c != nil {
			fmt.Fprintf(t, "%d %s\t%s\t%d\t%.4g\t%.3g\t%.3g\t%d at a time, %.3g GiB\n", i+1, s.Kind, s.Makes, c.Images,
				c.FLOPs/float64(c.Images)/1e9, c.PerSec, c.Hours, c.Batch, float64(c.Memory)/(1<<30))
		} else {
			fmt.Fprintf(t, "%d %s\t%s\t\t\t\t\t\n", i+1, s.Kind, s.Makes)
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "%.3g hours in all\n", p.Hours)
	for i, s := range p.Stages {
		if s.Kind == recipe.KindReference {
			fmt.Fprintf(w, "\n# for the rest, a server of the folder\n%s &\n", p.Serve)
		}
		fmt.Fprintf(w, "\n# %d %s\n%s\n", i+1, s.Kind, s.Command)
		if s.Settings == nil {
			continue
		}
		text, err := yaml.Marshal(map[string]any{s.Makes: s.Settings})
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s", text)
	}
	return nil
}
