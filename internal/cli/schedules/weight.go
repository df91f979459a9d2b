package schedules

import (
	"fmt"
	"io"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/cli/connect"
)

// weightRequest are the fields of MakeSchedule that a schedule of a weight takes.
var weightRequest = []command.Option{
	{Name: "name", Required: true, Usage: "`name` of the new schedule"},
	{
		Name: "sigma", Required: true, Kind: command.Object,
		Usage: "noise levels at which the weight is given, increasing: `JSON` such as [0.002,0.5,80]",
	},
	{
		Name: "weight", Required: true, Kind: command.Object,
		Usage: "of the squared error of the score there: `JSON` such as [1,4,0.1]",
	},
	{Name: "c", Kind: command.Number, Usage: "of the trajectory loss's weight", Otherwise: "1"},
	{Name: "T", Kind: command.Number, Usage: "end of time, a variance", Otherwise: "6400"},
	{Name: "g0", Kind: command.Number, Usage: "variance at t = 0", Otherwise: "1e-9"},
	{Name: "knots", Kind: command.Whole, Usage: "knots of the path", Otherwise: "32"},
	{Name: "replace", Kind: command.Toggle, Usage: "replace a schedule of that name"},
}

var weightSpec = command.Spec{
	Use:   "weight",
	Short: "Make the schedule whose trajectory loss is score matching with a given weight",
	Long: `Weight makes an isotropic schedule of a weight w on the squared error of the score: with
g' proportional to (c + g) w(g) the trajectory loss is that error, weighted by w at each
variance g and integrated over g (the paper's Lemma A.2). Between the noise levels given
w is a power of sigma, beyond them what it is at the ends.`,
	Example: `  anisoflight schedule weight --name even --sigma [1] --weight [1]
  anisoflight schedule show --schedule even --points 5`,
	Options: slices.Concat(weightRequest, connect.FolderOptions),
	JSON:    true,
	Run: connect.Makes("MakeSchedule", "weight", weightRequest, "making", func(w io.Writer, made api.ScheduleInfo) error {
		_, err := fmt.Fprintf(w, "made %s, up to T = %g\n", made.Name, made.T)
		return err
	}),
}
