package schedules

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/client"
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
		var rows []prediction
		err := connect.Collect(ctx, e, "Predict", e.Request(predictRequest), "measuring", func(m client.Message) {
			rows = append(rows, predictions(m.Schema, m.Batch)...)
		})
		if err != nil {
			return err
		}
		return e.Show(rows, func(w io.Writer) error {
			if top := int(e.Whole("top")); top > 0 && top < len(rows) {
				rows = rows[:top]
			}
			return printPredictions(w, rows)
		})
	},
}

type prediction struct {
	Basis      string  `json:"basis"`
	PerClass   bool    `json:"per_class"`
	K          int32   `json:"k,omitempty"`
	Cuts       []int32 `json:"cuts,omitempty"`
	Energy     float64 `json:"energy"`
	Stderr     float64 `json:"stderr"`
	Gain       float64 `json:"gain"`
	GainStderr float64 `json:"gain_stderr"`
}

func predictions(s api.Schema, b api.Batch) []prediction {
	whole := func(name string) []int32 { return api.ColumnOf[int32](s, b, name) }
	numbers := func(name string) []float64 { return api.ColumnOf[float64](s, b, name) }
	bases := strings.Fields(s.Metadata["bases"])
	out := make([]prediction, b.Rows)
	for i := range out {
		out[i] = prediction{
			Basis: bases[whole("basis")[i]], PerClass: whole("per_class")[i] == 1, K: whole("k")[i],
			Energy: numbers("energy")[i], Stderr: numbers("stderr")[i], Gain: numbers("gain")[i],
			GainStderr: numbers("gain_stderr")[i],
		}
		for _, name := range []string{"cut", "cut_2"} {
			if v := whole(name)[i]; v > 0 {
				out[i].Cuts = append(out[i].Cuts, v)
			}
		}
	}
	return out
}

func printPredictions(w io.Writer, rows []prediction) error {
	t := command.NewTable(w, "BASIS\tK\tCUTS\tPER CLASS\tENERGY\tGAIN")
	for _, p := range rows {
		k := "-"
		if p.K > 0 {
			k = fmt.Sprint(p.K)
		}
		cuts := strings.Trim(fmt.Sprint(p.Cuts), "[]")
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%.4g ± %.2g\t%.2f ± %.2f %%\n", p.Basis, k, cuts, command.YesNo(p.PerClass), p.Energy,
			p.Stderr, 100*p.Gain, 100*p.GainStderr)
	}
	return t.Flush()
}
