package connect

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/client"
	"github.com/anisoflight/anisoflight/internal/cli/command"
)

// Act does an action and decodes its reply into result, which may be nil.
func Act(ctx context.Context, c Connection, name string, fields map[string]any, progress func(api.Meta),
	result any,
) error {
	reply, err := c.Action(ctx, name, fields, progress)
	if err != nil || result == nil {
		return err
	}
	return json.Unmarshal(reply, result)
}

// Perform does an action that may take its time, and shows the progress.
func Perform(ctx context.Context, e command.Env, name string, fields map[string]any, doing string, result any) error {
	return WithServer(ctx, e, func(c Connection) error {
		p := command.NewProgress(e.Err, e.Log, doing)
		defer p.Close()
		return Act(ctx, c, name, fields, func(m api.Meta) { showMeta(p, m) }, result)
	})
}

// Collect runs an operation that returns rows, shows the progress, and hands every message with rows to take.
func Collect(ctx context.Context, e command.Env, op string, fields map[string]any, doing string,
	take func(client.Message),
) error {
	return WithServer(ctx, e, func(c Connection) error {
		p := command.NewProgress(e.Err, e.Log, doing)
		defer p.Close()
		said := false
		for m, err := range c.Get(ctx, op, fields) {
			if err != nil {
				return err
			}
			if text := m.Schema.Metadata["notes"]; text != "" && !said {
				var notes []string
				if err := json.Unmarshal([]byte(text), &notes); err == nil {
					Notes(e.Err, notes)
				}
				said = true
			}
			showMeta(p, m.Meta)
			if m.Batch.Rows > 0 {
				take(m)
			}
		}
		return nil
	})
}

// Notes writes what a reply notes, a line each.
func Notes(w io.Writer, notes []string) {
	for _, note := range notes {
		fmt.Fprintf(w, "note: %s\n", note)
	}
}

// List returns what one of the client's methods lists.
func List[R any](
	ctx context.Context, e command.Env, method func(*client.Client, context.Context) ([]R, error),
) (all []R, err error) {
	err = WithServer(ctx, e, func(c Connection) (err error) {
		all, err = method(c.Client, ctx)
		return err
	})
	return all, err
}

// Names of what there is, for completion.
var (
	Models    = names((*client.Client).ListModels, func(m api.ModelInfo) string { return m.Name })
	Schedules = names((*client.Client).ListSchedules, func(s api.ScheduleInfo) string { return s.Name })
	Bases     = names((*client.Client).ListBases, func(b api.BasisInfo) string { return b.Name })
	Datasets  = names((*client.Client).ListDatasets, func(d api.DatasetInfo) string { return d.Name })
	Runs      = names((*client.Client).ListRuns, func(r api.RunInfo) string { return r.Name })
)

func names[R any](method func(*client.Client, context.Context) ([]R, error), name func(R) string,
) func(context.Context, command.Env) ([]string, error) {
	return func(ctx context.Context, e command.Env) ([]string, error) {
		all, err := List(ctx, e, method)
		out := make([]string, len(all))
		for i, one := range all {
			out[i] = name(one)
		}
		return out, err
	}
}

// showMeta moves a bar by the progress that an operation reports: the steps of the
// part in work, with the parts done in words, or what has been sent.
func showMeta(p *command.Progress, m api.Meta) {
	switch m["event"] {
	case "progress":
		note := ""
		if total := integer(m["total"]); total > 0 {
			note = fmt.Sprintf("%d/%d", integer(m["done"]), total)
		}
		p.Set(integer(m["step"]), integer(m["steps"]), note)
	case "batch":
		p.Set(integer(m["done"]), integer(m["total"]), "")
	}
}

func integer(v any) int64 {
	n, _ := v.(float64) // as every number in JSON
	return int64(n)
}
