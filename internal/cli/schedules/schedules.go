package schedules

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/client"
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/cli/connect"
	"github.com/anisoflight/anisoflight/schedule"
)

// Group is the commands on schedules.
var Group = command.Group{
	Use:   "schedule",
	Short: "List, show, make, export and import noise schedules",
	Example: `  anisoflight schedule list
  anisoflight schedule show --schedule digits
  anisoflight schedule export --schedule digits --out digits.csv
  anisoflight schedule import --name mine --file digits.csv
  anisoflight schedule geodesic --name digits-geo --model digits --dataset digits
  anisoflight schedule nodes --name digits-5 --dataset digits --solver dpmpp2m --nfe 5
  anisoflight schedule start --name digits-start --dataset digits --sigma-max 10
  anisoflight schedule few --name few --model digits --dataset digits --nfe 5`,
	Specs: []command.Spec{
		listSpec, showSpec, exportSpec, importSpec, geodesicSpec, nodesSpec,
		startSpec, fewSpec, fitSpec, weightSpec, benchSpec,
		predictSpec,
	},
}

// scheduleOption names the schedule that is shown, as EvaluateSchedule does.
var scheduleOption = connect.Fields(new(api.EvaluateSchedule))[0]

var listSpec = connect.ListSpec("schedules, those of models included", "schedule", (*client.Client).ListSchedules,
	"NAME\tOF\tT\tJ\tPER CLASS\tBASIS", func(s api.ScheduleInfo) string {
		return fmt.Sprintf("%s\t%s\t%g\t%d\t%s\t%s", s.Name, s.Source, s.T, s.J, command.YesNo(s.PerClass), s.Basis)
	})

var showSpec = command.Spec{
	Use:   "show",
	Short: "Print where a schedule came from, and g, its derivative and sigma by time",
	Example: `  anisoflight schedule show --schedule digits
  anisoflight schedule show --schedule edm --points 5`,
	Options: slices.Concat([]command.Option{
		scheduleOption,
		{Name: "points", Kind: command.Whole, Default: "17", Usage: "times, uniform from 0 to T"},
	}, connect.FolderOptions),
	JSON: true,
	Run: func(ctx context.Context, e command.Env) error {
		ref := e.Get("schedule")
		var shown struct {
			scheduleTable
			Provenance *schedule.Provenance `json:"provenance,omitempty"`
		}
		err := connect.WithServer(ctx, e, func(c connect.Connection) (err error) {
			if shown.scheduleTable, err = evaluate(ctx, c, ref.Value, e.Whole("points")); err != nil {
				return err
			}
			s, err := exported(ctx, c, ref.Value)
			if err != nil {
				return err
			}
			shown.Provenance = s.Provenance()
			return nil
		})
		if err != nil {
			return err
		}
		return e.Show(shown, func(w io.Writer) error {
			if shown.Provenance != nil {
				if err := command.PrintJSON(w, shown.Provenance); err != nil {
					return err
				}
			}
			return shown.print(w)
		})
	},
}

// scheduleTable is the columns of EvaluateSchedule.
type scheduleTable struct {
	Label    []int32   `json:"label"`
	Subspace []int32   `json:"subspace"`
	T        []float64 `json:"t"`
	G        []float64 `json:"g"`
	Gdot     []float64 `json:"gdot"`
	Sigma    []float64 `json:"sigma"`
}

// evaluate tabulates a schedule.
func evaluate(ctx context.Context, c connect.Connection, ref any, points int64) (scheduleTable, error) {
	s, b, _, err := client.ReadAll(c.Get(ctx, "EvaluateSchedule", map[string]any{"schedule": ref, "points": points}))
	if err != nil {
		return scheduleTable{}, err
	}
	return scheduleTable{
		Label: api.ColumnOf[int32](s, b, "label"), Subspace: api.ColumnOf[int32](s, b, "subspace"),
		T: api.ColumnOf[float64](s, b, "t"),
		G: api.ColumnOf[float64](s, b, "g"), Gdot: api.ColumnOf[float64](s, b, "gdot"),
		Sigma: api.ColumnOf[float64](s, b, "sigma"),
	}, nil
}

func (s scheduleTable) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "label\tsubspace\tt\tg\tgdot\tsigma\t")
	for i := range s.T {
		label := "all"
		if s.Label[i] >= 0 {
			label = fmt.Sprint(s.Label[i])
		}
		fmt.Fprintf(t, "%s\t%d\t%.6g\t%.4e\t%.4e\t%.4e\t\n", label, s.Subspace[i], s.T[i], s.G[i], s.Gdot[i], s.Sigma[i])
	}
	return t.Flush()
}
