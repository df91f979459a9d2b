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

// startRequest are the fields of MakeSchedule that a schedule with a start takes.
var startRequest = []command.Option{
	{Name: "name", Required: true, Usage: "`name` of the new schedule"},
	{Name: "dataset", Required: true, Usage: "`name` of the data set whose mean and covariance are measured"},
	{Name: "model", Usage: "`name` of a model that sees the data in its own units", Names: connect.Models},
	{
		Name: "schedule", Kind: command.Object,
		Usage: "whose paths are kept: a name, a model's for its own, or JSON such as {\"edm\":{\"T\":400}} (default: edm)",
	},
	{
		Name: "sigma_max", Kind: command.Object,
		Usage: "start at this lower noise level, a `number`, or one for each subspace such as [20,5] (default: the " +
			"schedule's end)",
	},
	{
		Name: "covariance",
		Usage: "what is kept of the data's: " + strings.Join(api.Covariances, " ") + " (default dct: the channels' at each " +
			"frequency)",
	},
	{Name: "rank", Kind: command.Whole, Usage: "of pca: leading components (default 16)"},
	{Name: "cuts", Kind: command.Object, Usage: "of bands: where they are cut, `JSON` such as [1,2,4] (default: octaves)"},
	{Name: "per_class", Kind: command.Toggle, Usage: "a law for each class (default true)"},
	{
		Name: "shrinkage", Kind: command.Number,
		Usage: "of per_class: images that the classes' mean covariance counts for (default: the values estimated together)",
	},
	{Name: "replace", Kind: command.Toggle, Usage: "replace a schedule of that name"},
}

var startSpec = command.Spec{
	Use:   "start",
	Short: "Start a schedule from the data's own normal law instead of noise",
	Long: `Start measures the mean μ and the covariance Σ of a data set in one pass and stores
them with a copy of a schedule, cut off at a lower noise level where --sigma-max says
so. Sampling along it starts from

  x = μ + (Σ + M)^½ ξ    instead of    x = M^½ ξ,

the law that such data have under noise of covariance M, as far as they are normal. It
costs no evaluation, and lets few evaluations begin at lower noise. Export writes the
law as start.safetensors, for other samplers.`,
	Example: `  anisoflight schedule start --name digits-start --dataset digits --sigma-max 10
  anisoflight sample --model digits --schedule digits-start --solver dpmpp2m --grid polynomial --nfe 5`,
	Options: slices.Concat(startRequest, connect.FolderOptions),
	JSON:    true,
	Run:     connect.Makes("MakeSchedule", "start", startRequest, "measuring", printStart),
}

func printStart(w io.Writer, made api.ScheduleInfo) error {
	s, laws := made.Start, "one law"
	if n := len(s.Labels); n > 0 {
		laws = fmt.Sprintf("laws of %d classes", n)
	}
	_, err := fmt.Fprintf(w, "%s: T = %g, %s of %d images, covariance %s, total variance %.4g\n"+
		"sample with: --schedule %s\n", made.Name, made.T, laws, s.Images, s.Covariance, s.Variance, made.Name)
	return err
}
