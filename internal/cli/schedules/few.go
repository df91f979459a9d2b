package schedules

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

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

// fewRequest are the fields of MakeSchedule that a schedule of kind few takes.
var fewRequest = slices.Concat([]command.Option{
	{Name: "name", Required: true, Usage: "`name` of the new schedule"},
	{Name: "model", Required: true, Usage: "`name` of the model to sample"},
	{Name: "dataset", Required: true, Usage: "`name` of the data set that samples are compared with"},
	{Name: "nfe", Required: true, Kind: command.Whole, Usage: "evaluations of the network: takes the most steps that fit"},
	{
		Name: "solvers", Kind: command.Object,
		Usage: "tried: `JSON` such as [\"ipndm\",\"unipc\"] (default: ipndm, dpmpp2m, unipc, local, fitted)",
	},
	{Name: "samples", Kind: command.Whole, Usage: "of each try, and as many held back (default 1024)"},
	{Name: "seed", Kind: command.Seed, Usage: "of the samples (default 0)"},
	{
		Name: "start", Kind: command.Object,
		Usage: "what is kept of the data's covariance: JSON such as {\"covariance\":\"full\"} (default: dct, per class)",
	},
	{Name: "replace", Kind: command.Toggle, Usage: "replace a schedule of that name"},
}, Guidance)

var fewSpec = command.Spec{
	Use:   "few",
	Short: "Find what samples a model best in few evaluations",
	Long: `Few tries samplers on a model: solvers, on EDM's noise levels and on those that suit the
solver on the data's own Gaussian, started from the data's own law at several noise
levels; and beside them the same solvers from noise alone. Of those it keeps what comes
closest to the data set, by two Fréchet distances that need no network: of the low
frequencies, and of the differences between neighbouring pixels. The table has them on
the samples of the choice and on as many that it has not seen. At 16×16 with 1.4 M
parameters 5 evaluations take 95 s on two quiet cores; the time grows with the cost of
an evaluation.

The schedule knows its start and its solver: sample along it with nfe alone.`,
	Example: `  anisoflight schedule few --name few --model digits --dataset digits --nfe 5
  anisoflight sample --model digits --schedule few --nfe 5`,
	Options: slices.Concat(fewRequest, connect.FolderOptions),
	JSON:    true,
	Run:     connect.Makes("MakeSchedule", "few", fewRequest, "trying", printFew),
}

// printFew shows the sampler that was chosen beside the best from noise alone.
func printFew(w io.Writer, made api.ScheduleInfo) error {
	f := made.Few
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "\tSOLVER\tNFE\tFROM\tSTART\tLEVELS\tFREQUENCIES\tEDGES\tHELD BACK")
	for _, q := range []struct {
		is  string
		try api.FewTry
	}{{"chosen", f.Chosen}, {"from noise", f.Against}} {
		fmt.Fprintf(t, "%s\t%s\t%d\t%.3g\t%s\t%s\t%.3g\t%.3g\t%.3g, %.3g\n", q.is, q.try.Solver, q.try.NFE, q.try.SigmaMax,
			q.try.Start, q.try.Levels, q.try.Frequencies, q.try.Edges, q.try.Held.Frequencies, q.try.Held.Edges)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "sample with: --schedule %s --nfe %d\n", made.Name, f.Chosen.NFE)
	return err
}
