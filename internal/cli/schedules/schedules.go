package schedules

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/client"
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/cli/connect"
)

// Group has the commands on schedules.
var Group = command.Group{
	Use:   "schedule",
	Short: "List, show and make noise schedules",
	Long: `Schedule lists, shows and makes noise schedules. In Python, Schedule.save writes the
file of a schedule and Client.put_schedule uploads it.`,
	Example: `  anisoflight schedule list
  anisoflight schedule show --schedule digits
  anisoflight schedule geodesic --name digits-geo --model digits --dataset digits
  anisoflight schedule start --name digits-start --dataset digits --sigma-max 10`,
	Specs: []command.Spec{
		listSpec, showSpec, geodesicSpec, startSpec, predictSpec,
	},
}

var listSpec = connect.ListSpec("schedules, those of models included", "schedule", (*client.Client).ListSchedules,
	"NAME\tOF\tT\tJ\tPER CLASS\tBASIS", func(s api.ScheduleInfo) string {
		return fmt.Sprintf("%s\t%s\t%g\t%d\t%s\t%s", s.Name, s.Source, s.T, s.J, command.YesNo(s.PerClass), s.Basis)
	})

var showSpec = command.Spec{
	Use:   "show",
	Short: "Print a schedule's provenance, and g, its derivative and sigma by time",
	Example: `  anisoflight schedule show --schedule digits
  anisoflight schedule show --schedule edm --points 5`,
	Options: slices.Concat([]command.Option{
		connect.Fields(new(api.EvaluateSchedule))[0], // schedule
		{Name: "points", Kind: command.Whole, Default: "17", Usage: "number of times, uniform from 0 to T"},
	}, connect.FolderOptions),
	JSON: true,
	Run: func(ctx context.Context, e command.Env) error {
		shown := map[string]any{} // the columns of EvaluateSchedule, and the file's provenance
		var table connect.Table
		err := connect.WithServer(ctx, e, func(c *client.Client) error {
			request := map[string]any{"schedule": e.Value("schedule")}
			text, err := c.Action(ctx, "ExportSchedule", request, nil)
			var file map[string]json.RawMessage
			if err == nil {
				err = json.Unmarshal(text, &file)
			}
			if err != nil {
				return err
			}
			if text := file["provenance"]; text != nil {
				shown["provenance"] = text
			}
			request["points"] = e.Whole("points")
			s, b, _, err := client.ReadAll(c.Get(ctx, "EvaluateSchedule", request))
			for i, column := range s.Columns {
				shown[column.Name] = b.Cols[i]
			}
			table.Add(s, b)
			return err
		})
		if err != nil {
			return err
		}
		return e.Show(shown, func(w io.Writer) error {
			if provenance, ok := shown["provenance"]; ok {
				if err := command.PrintJSON(w, provenance); err != nil {
					return err
				}
			}
			return table.Print(w)
		})
	},
}
