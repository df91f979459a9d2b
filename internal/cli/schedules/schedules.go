package schedules

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/client"
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/cli/connect"
)

// Group is the commands on schedules.
var Group = command.Group{
	Use:   "schedule",
	Short: "List, show and make noise schedules",
	Long: `Schedule lists, shows and makes noise schedules. In Python, Schedule.save and
Client.put_schedule write and read their files.`,
	Example: `  anisoflight schedule list
  anisoflight schedule show --schedule digits
  anisoflight schedule geodesic --name digits-geo --model digits --dataset digits
  anisoflight schedule nodes --name digits-5 --dataset digits --solver dpmpp2m --nfe 5
  anisoflight schedule start --name digits-start --dataset digits --sigma-max 10
  anisoflight schedule few --name few --model digits --dataset digits --nfe 5`,
	Specs: []command.Spec{
		listSpec, showSpec, geodesicSpec, nodesSpec, startSpec, fewSpec, fitSpec, benchSpec, predictSpec,
	},
}

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
		connect.Fields(new(api.EvaluateSchedule))[0], // schedule
		{Name: "points", Kind: command.Whole, Default: "17", Usage: "times, uniform from 0 to T"},
	}, connect.FolderOptions),
	JSON: true,
	Run: func(ctx context.Context, e command.Env) error {
		var shown scheduleTable
		err := connect.WithServer(ctx, e, func(c *client.Client) error {
			request := map[string]any{"schedule": e.Value("schedule")}
			var file struct {
				Sampler    json.RawMessage `json:"sampler"`
				Provenance json.RawMessage `json:"provenance"`
			}
			if err := connect.Act(ctx, c, "ExportSchedule", request, nil, &file); err != nil {
				return err
			}
			shown.Sampler, shown.Provenance = file.Sampler, file.Provenance
			request["points"] = e.Whole("points")
			s, b, _, err := client.ReadAll(c.Get(ctx, "EvaluateSchedule", request))
			if err != nil {
				return err
			}
			shown.Label, shown.Subspace = api.ColumnOf[int32](s, b, "label"), api.ColumnOf[int32](s, b, "subspace")
			shown.T, shown.G = api.ColumnOf[float64](s, b, "t"), api.ColumnOf[float64](s, b, "g")
			shown.Gdot, shown.Sigma = api.ColumnOf[float64](s, b, "gdot"), api.ColumnOf[float64](s, b, "sigma")
			return nil
		})
		if err != nil {
			return err
		}
		return e.Show(shown, shown.print)
	},
}

// scheduleTable is the columns of EvaluateSchedule, the sampler and the provenance of a schedule's file.
type scheduleTable struct {
	Label      []int32         `json:"label"`
	Subspace   []int32         `json:"subspace"`
	T          []float64       `json:"t"`
	G          []float64       `json:"g"`
	Gdot       []float64       `json:"gdot"`
	Sigma      []float64       `json:"sigma"`
	Sampler    json.RawMessage `json:"sampler,omitempty"`
	Provenance json.RawMessage `json:"provenance,omitempty"`
}

func (s scheduleTable) print(w io.Writer) error {
	if s.Sampler != nil {
		fmt.Fprintf(w, "sampler %s\n", s.Sampler)
	}
	if s.Provenance != nil {
		if err := command.PrintJSON(w, s.Provenance); err != nil {
			return err
		}
	}
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
