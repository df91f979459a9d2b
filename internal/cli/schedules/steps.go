package schedules

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/cli/connect"
)

// Guidance are the fields of Sample, and of the schedules chosen by samples, that say how these are guided.
var Guidance = []command.Option{
	{
		Name: "guidance", Kind: command.Number,
		Usage: "s in D₀ + s (D₁ − D₀), D₀ without a label or of the guide", Otherwise: "1: none",
	},
	{Name: "guide", Usage: "another `model`, for D₀", Otherwise: "the model without a label", Names: connect.Models},
	{Name: "guidance_interval", Kind: command.Object, Usage: "noise levels that are guided, as JSON: [0.2, 3]"},
}

// stepsRequest are the fields of MakeSchedule that a schedule of steps takes.
var stepsRequest = slices.Concat([]command.Option{
	{Name: "name", Required: true, Usage: "`name` of the new schedule"},
	{Name: "model", Required: true, Usage: "`name` of the model whose trajectories are followed", Names: connect.Models},
	{
		Name: "schedule", Kind: command.Object,
		Usage: "whose paths are kept: a name, edm, or JSON such as {\"edm\":{\"T\":400}}", Otherwise: "the model's own",
		OneOf: []string{"edm"}, Names: connect.Schedules,
	},
	{
		Name: "solver", Required: true,
		Usage: "`name` of the solver to sample with: " + strings.Join(api.Solvers, " "),
		OneOf: api.Solvers,
	},
	{Name: "nfe", Required: true, Kind: command.Whole, Usage: "evaluations of the network: takes the most steps that fit"},
	{Name: "samples", Kind: command.Whole, Usage: "trajectories", Otherwise: "24"},
	{Name: "seed", Kind: command.Seed, Usage: "of the trajectories", Otherwise: "0"},
	{Name: "replace", Kind: command.Toggle, Usage: "replace a schedule of that name"},
}, Guidance)

var stepsSpec = command.Spec{
	Use:   "steps",
	Short: "Choose where a solver's steps lie along a schedule, for a model",
	Long: `Steps follows a few converged trajectories of a model along a schedule, measures on them
the error of single steps of a solver from any time to any later one, and finds the
steps of least total error by dynamic programming. Then it moves them, one by one,
while the solver's measured error falls. It stores them as a schedule along the same
path, in every subspace and class, whose uniform steps they are.

The table has the sum of the single steps' errors, and the measured ODE error: the
root mean square difference to the converged samples from as many other latents.`,
	Example: `  anisoflight schedule steps --name digits-ab-5 --model digits --solver ab --nfe 5
  anisoflight sample --model digits --schedule digits-ab-5 --solver ab --nfe 5`,
	Options: slices.Concat(stepsRequest, connect.FolderOptions),
	JSON:    true,
	Run:     connect.Makes("MakeSchedule", "steps", stepsRequest, "choosing", printSteps),
}

func printSteps(w io.Writer, made api.ScheduleInfo) error {
	s := made.Steps
	t := command.NewTable(w, "SCHEDULE\tSTEPS\tNFE\tPREDICTED\tODE ERROR")
	fmt.Fprintf(t, "%s\t%d\t%d\t%.3g\t%.3g\n", made.Name, s.Steps, s.NFE, s.Predicted, s.Error)
	fmt.Fprintf(t, "%s\t%d\t%d\t%.3g\t%.3g\n", s.Schedule, s.Steps, s.NFE, s.PredictedUniform, s.ErrorUniform)
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "sample with: --schedule %s --solver %s --nfe %d\n", made.Name, s.Solver, s.NFE)
	return err
}
