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
