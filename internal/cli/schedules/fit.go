package schedules

import (
	"fmt"
	"io"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/cli/connect"
)

// fitRequest are the fields of MakeSchedule that a fit takes.
var fitRequest = []command.Option{
	{Name: "name", Required: true, Usage: "`name` of the new schedule"},
	{Name: "model", Required: true, Usage: "`name` of the model whose trajectories are followed"},
	{Name: "schedule", Required: true, Kind: command.Object, Usage: "a schedule with statistics, of schedule geodesic"},
	{Name: "nfe", Required: true, Kind: command.Whole, Usage: "evaluations of the network"},
	{Name: "order", Kind: command.Whole, Usage: "of the solver local, where the fit begins: 1 to 3 (default 2)"},
	{Name: "grid", Kind: command.Object, Usage: "of the nodes: a named one, or JSON (default polynomial)"},
	{Name: "isotropic", Kind: command.Toggle, Usage: "one set of coefficients for all frequencies, from DPM-Solver++"},
	{Name: "lower_order_final", Kind: command.Toggle, Usage: "the last steps look back on less (default true)"},
	{Name: "samples", Kind: command.Whole, Usage: "trajectories to fit to, and twice as many others (default 256)"},
	{Name: "seed", Kind: command.Seed, Usage: "of the trajectories (default 0)"},
	{Name: "replace", Kind: command.Toggle, Usage: "replace a schedule of that name"},
}

var fitSpec = command.Spec{
	Use:   "fit",
	Short: "Fit the coefficients of each step to a model's own trajectories",
	Long: `Fit follows converged trajectories of a model and moves the coefficients of the solver
local, in every frequency, to where each of its steps should end, by least squares. A
ridge holds them near their start; samples of their own choose how strongly, and others
judge. With --isotropic all frequencies have the same, and the fit starts from
DPM-Solver++: what the same fit gains without looking at frequencies. Sample with solver
fitted and the same number of evaluations.`,
	Example: `  anisoflight schedule geodesic --name digits-local --model digits --dataset digits --statistics
  anisoflight schedule fit --name digits-5 --model digits --schedule digits-local --nfe 5
  anisoflight sample --model digits --schedule digits-5 --solver fitted --nfe 5`,
	Options: slices.Concat(fitRequest, connect.FolderOptions),
	JSON:    true,
	Run:     connect.Makes("MakeSchedule", "fit", fitRequest, "fitting", printFit),
}

func printFit(w io.Writer, made api.ScheduleInfo) error {
	f := made.Fit
	_, err := fmt.Fprintf(w, "ODE error on %d other latents: %.3g fitted, %.3g before\n"+
		"sample with: --schedule %s --solver fitted --nfe %d\n", f.Samples, f.Fitted, f.Local, made.Name, f.NFE)
	return err
}
