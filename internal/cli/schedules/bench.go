package schedules

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/cli/connect"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// benchRequest lists the options for fields of BenchSchedule.
var benchRequest = connect.Fields(new(api.BenchSchedule))

var benchSpec = command.Spec{
	Use:   "bench",
	Short: "Compare solvers and schedules on a data set's own Gaussian, in closed form",
	Long: `Bench replaces the data by the Gaussian that has their mean and spectrum. There a
sampler's output is known exactly, without a model or samples. The table has the
squared 2-Wasserstein distance to that Gaussian over its total variance (w2_squared),
in all and by subspace. The column shift is the part that comes from starting at noise
without the data's mean, which no solver can change.`,
	Example: `  anisoflight schedule bench --dataset digits --nfe 5,9,17 --solvers heun,dpmpp2m
  anisoflight schedule bench --dataset digits --schedules edm,digits-5 --nfe 5 --solvers dpmpp2m`,
	Options: slices.Concat(benchRequest, connect.FolderOptions),
	JSON:    true,
	Run: func(ctx context.Context, e command.Env) error {
		request := e.Request(benchRequest)
		table, err := connect.Rows(ctx, e, "BenchSchedule", request, "measuring")
		if err != nil {
			return err
		}
		for _, row := range table.Rows {
			row["schedule"] = entry(request["schedules"], int(row["schedule"].(int32)), "edm")
			row["solver"] = entry(request["solvers"], int(row["solver"].(int32)), "heun")
		}
		return e.Show(table.Rows, table.Print)
	},
}

// entry returns the entry of a request's list at a position, or the default if the request has no list.
func entry(list any, at int, def string) any {
	if l, ok := list.([]any); ok && at < len(l) {
		return l[at]
	}
	return def
}

// predictRequest lists the options for fields of Predict.
var predictRequest = connect.Fields(new(api.Predict),
	command.Option{Name: "bases", OneOf: basis.Names(basis.Definition.Predicted)})

var predictSpec = command.Spec{
	Use:   "predict",
	Short: "Predict how much energy each basis, and schedules per class, can save",
	Long: `Predict measures a model's residual by noise level and direction in one pass over a data
set. From it, it estimates how much less energy than the best isotropic schedule each
family of schedules can have, before anything is trained. A gain of less than two
standard errors may be chance. The largest gains come first.`,
	Example: `  anisoflight schedule predict --model digits --dataset digits
  anisoflight schedule predict --model patches --dataset patches --c 16 --samples 128 --top 40`,
	Options: slices.Concat(predictRequest, []command.Option{{
		Name: "top", Kind: command.Whole, Default: "20",
		Usage: "number of rows to print; 0 prints all", Bounds: `min:"0"`,
	}}, connect.FolderOptions),
	JSON: true,
	Run: func(ctx context.Context, e command.Env) error {
		table, err := connect.Rows(ctx, e, "Predict", e.Request(predictRequest), "measuring")
		if err != nil {
			return err
		}
		bases := strings.Fields(table.Metadata["bases"])
		for _, row := range table.Rows {
			row["basis"] = bases[row["basis"].(int32)]
		}
		return e.Show(table.Rows, func(w io.Writer) error {
			if top := int(e.Whole("top")); top > 0 && top < len(table.Rows) {
				table.Rows = table.Rows[:top]
			}
			return table.Print(w)
		})
	},
}
