package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/anisoflight/anisoflight/flight/api"
)

// stepsRequest are the fields of MakeSchedule that a schedule of steps takes.
var stepsRequest = []option{
	{name: "name", needed: true, usage: "`name` of the new schedule"},
	{name: "model", needed: true, usage: "`name` of the model whose trajectories are followed"},
	{name: "schedule", kind: object, usage: "whose paths are kept: a name, edm, or JSON such as {\"edm\":{\"T\":400}} (default: the model's own)"},
	{name: "solver", needed: true, usage: "`name` of the solver to sample with: " + strings.Join(api.Solvers, " ")},
	{name: "nfe", needed: true, kind: whole, usage: "evaluations of the network: takes the most steps that fit"},
	{name: "samples", kind: whole, usage: "trajectories (default 24)"},
	{name: "seed", kind: seed, usage: "of the trajectories (default 0)"},
	{name: "replace", kind: toggle, usage: "replace a schedule of that name"},
}

var scheduleStepsSpec = spec{
	use:   "steps",
	short: "Choose where a solver's steps lie along a schedule, for a model",
	long: `Steps follows a few converged trajectories of a model along a schedule, measures on them
the error of single steps of a solver from any time to any later one, and finds the
steps of least total error by dynamic programming. Then it moves them, one by one,
while the solver's measured error falls. It stores them as a schedule along the same
path, in every subspace and class, whose uniform steps they are.

The table has the sum of the single steps' errors, and the measured ODE error: the
root mean square difference to the converged samples from as many other latents.`,
	example: `  anisoflight schedule steps --name digits-ab-5 --model digits --solver ab --nfe 5
  anisoflight sample --model digits --schedule digits-ab-5 --solver ab --nfe 5`,
	options: slices.Concat(stepsRequest, folderOptions),
	json:    true,
	run: func(ctx context.Context, e env) error {
		fields := e.request(stepsRequest)
		fields["kind"] = "steps"
		var reply api.ScheduleInfo
		if err := perform(ctx, e, "MakeSchedule", fields, "choosing", &reply); err != nil {
			return err
		}
		if e.json {
			return printJSON(e.out, reply)
		}
		s := reply.Steps
		t := tabwriter.NewWriter(e.out, 0, 8, 2, ' ', 0)
		fmt.Fprintln(t, "SCHEDULE\tSTEPS\tNFE\tPREDICTED\tODE ERROR")
		fmt.Fprintf(t, "%s\t%d\t%d\t%.3g\t%.3g\n", reply.Name, s.Steps, s.NFE, s.Predicted, s.Error)
		fmt.Fprintf(t, "%s\t%d\t%d\t%.3g\t%.3g\n", s.Schedule, s.Steps, s.NFE, s.PredictedUniform, s.ErrorUniform)
		if err := t.Flush(); err != nil {
			return err
		}
		_, err := fmt.Fprintf(e.out, "sample with: --schedule %s --solver %s --nfe %d\n", reply.Name, s.Solver, s.NFE)
		return err
	},
}
