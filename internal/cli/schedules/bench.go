package schedules

import (
	"context"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/cli/connect"
)

// benchRequest are the fields of BenchSchedule.
var benchRequest = connect.Without(connect.Fields(new(api.BenchSchedule)), "start")

var benchSpec = command.Spec{
	Use:   "bench",
	Short: "Run solvers on schedules on a data set's own Gaussian, in closed form",
	Long: `Bench replaces the data by the normal law of its mean and spectrum, on which a
sampler's output is known exactly: no model, no samples, no noise. The table has its
squared 2-Wasserstein distance to that law over the law's total variance (w2_squared), in
all and by subspace, and how much of it is the shift that comes of starting from noise without the
data's mean, which no solver can help.`,
	Example: `  anisoflight schedule bench --dataset digits --nfe 5,9,17 --solvers heun,dpmpp2m
  anisoflight schedule bench --dataset digits --schedules edm,digits-5 --nfe 5 --basis dct`,
	Options: slices.Concat(benchRequest, connect.FolderOptions),
	JSON:    true,
	Run: func(ctx context.Context, e command.Env) error {
		request := e.Request(benchRequest)
		table, err := connect.Rows(ctx, e, "BenchSchedule", request, "measuring",
			func(row map[string]any, _ map[string]string) {
				row["schedule"] = entry(request["schedules"], int(row["schedule"].(int32)), "edm")
				row["solver"] = entry(request["solvers"], int(row["solver"].(int32)), "heun")
			})
		if err != nil {
			return err
		}
		return e.Show(table.Rows, table.Print)
	},
}

// entry returns what stands at a position of a request's list, or the default of a list left out.
func entry(list any, at int, def string) any {
	if l, ok := list.([]any); ok && at < len(l) {
		return l[at]
	}
	return def
}
