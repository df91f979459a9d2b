package schedules

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/cli/connect"
)

// nodesRequest are the fields of MakeSchedule that a gaussian schedule takes.
var nodesRequest = []command.Option{
	{Name: "name", Required: true, Usage: "`name` of the new schedule"},
	{Name: "dataset", Required: true, Usage: "`name` of the data set whose Gaussian is measured", Names: connect.Datasets},
	{Name: "model", Usage: "`name` of a model whose units and noise levels rule", Names: connect.Models},
	{
		Name: "solver", Required: true,
		Usage: "`name` of the solver to sample with: " + strings.Join(api.Solvers, " "),
		OneOf: api.Solvers,
	},
	{Name: "nfe", Required: true, Kind: command.Whole, Usage: "evaluations of the network: takes the most steps that fit"},
	{
		Name:      "basis",
		Usage:     "none, or dct for noise levels by frequency",
		Otherwise: "none", OneOf: []string{"none", "dct"},
	},
	{
		Name: "k", Kind: command.Whole,
		Usage: "of dct: dimensions of the low frequencies per channel, a square", Otherwise: "half of each axis",
	},
	{
		Name: "cuts", Kind: command.Object,
		Usage: "of dct: nested bands instead of k, `JSON` such as [2,4] for three subspaces",
	},
	{Name: "T", Kind: command.Number, Usage: "end of time, a variance", Otherwise: "6400"},
	{Name: "g0", Kind: command.Number, Usage: "variance at t = 0", Otherwise: "1e-9"},
	{
		Name: "start", Kind: command.Object,
		Usage:     "keep the data's own law, which sampling then starts from: JSON such as {\"covariance\":\"dct\"}",
		Otherwise: "from noise alone",
	},
	{Name: "replace", Kind: command.Toggle, Usage: "replace a schedule of that name"},
}

var nodesSpec = command.Spec{
	Use:   "nodes",
	Short: "Choose a solver's noise levels on a data set's own Gaussian, without a model",
	Long: `Nodes measures the mean and the spectrum of a data set and chooses the noise levels at
which a solver with so few evaluations comes closest to the normal law that has them,
in each subspace of a basis its own. It stores them as a schedule for that solver and
that number of evaluations, for any model of such images.

The table has the squared 2-Wasserstein distances to that law, over its total
variance: of the nodes, and of the same solver on EDM's noise levels (ρ = 7).`,
	Example: `  anisoflight schedule nodes --name digits-5 --dataset digits --basis dct --solver dpmpp2m --nfe 5
  anisoflight sample --model digits --schedule digits-5 --solver dpmpp2m --nfe 5`,
	Options: slices.Concat(nodesRequest, connect.FolderOptions),
	JSON:    true,
	Run:     connect.Makes("MakeSchedule", "gaussian", nodesRequest, "choosing", printNodes),
}

func printNodes(w io.Writer, s api.ScheduleInfo) error {
	return printBench(w, s.Name, *s.Bench)
}

// printBench shows the gain of nodes, in all and by subspace.
func printBench(w io.Writer, name string, b api.Bench) error {
	bands := b.Bands
	if len(bands) == 1 { // which is all
		bands = nil
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprint(t, "SCHEDULE\tGRID\tSTEPS\tNFE\tW2²")
	for j, band := range bands {
		fmt.Fprintf(t, "\tSUBSPACE %d (%d dims, %.3g %% of variance)", j, band.Dims, 100*band.Variance)
	}
	row := func(schedule, grid string, s api.BenchSampler, part func(api.BenchBand) float64) {
		fmt.Fprintf(t, "\n%s\t%s\t%d\t%d\t%.2e", schedule, grid, s.Steps, s.NFE, s.W2)
		for _, band := range bands {
			fmt.Fprintf(t, "\t%.2e", part(band))
		}
	}
	row(name, "schedule", b.Nodes, func(band api.BenchBand) float64 { return band.Nodes })
	row("edm", "edm", b.Baseline, func(band api.BenchBand) float64 { return band.Baseline })
	fmt.Fprintln(t)
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "sample with: --schedule %s --solver %s --nfe %d\n", name, b.Solver, b.Nodes.NFE)
	return err
}
