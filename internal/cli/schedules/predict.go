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

// predictRequest are the fields of Predict.
var predictRequest = connect.Fields(new(api.Predict),
	command.Option{Name: "bases", OneOf: basis.Names(basis.Definition.Predicted)})

var predictSpec = command.Spec{
	Use:   "predict",
	Short: "Predict how much energy each basis, and schedules per class, can save",
	Long: `Predict measures a model's residual by noise level and direction in one pass over a data
set, and estimates how far each family of schedules can get below the best isotropic one,
before anything is trained. Gains have standard errors; gains within two of them are
no gains. The most promising come first.`,
	Example: `  anisoflight schedule predict --model digits --dataset digits
  anisoflight schedule predict --model patches --dataset patches --c 16 --samples 128 --top 40`,
	Options: slices.Concat(predictRequest, []command.Option{{
		Name: "top", Kind: command.Whole, Default: "20",
		Usage: "rows to print; 0 prints all",
	}}, connect.FolderOptions),
	JSON: true,
	Run: func(ctx context.Context, e command.Env) error {
		table, err := connect.Rows(ctx, e, "Predict", e.Request(predictRequest), "measuring",
			func(row map[string]any, metadata map[string]string) {
				row["basis"] = strings.Fields(metadata["bases"])[row["basis"].(int32)]
			})
		if err != nil {
			return err
		}
		return e.Show(table.Rows, func(w io.Writer) error {
			if top := int(e.Whole("top")); top > 0 && top < len(table.Rows) {
				table.Rows = table.Rows[:top]
			}
			return table.Print(w)
		})
	},
}
