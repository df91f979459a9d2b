package connect

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"

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

// Rows collects the rows of an operation, each as an object by the names of its columns. Its table has the columns in
// their order; edit, which may be nil, changes a row by what the schema's metadata says.
func Rows(ctx context.Context, e command.Env, op string, fields map[string]any, doing string,
	edit func(row map[string]any, metadata map[string]string),
) (*Table, error) {
	t := &Table{}
	err := Collect(ctx, e, op, fields, doing, func(m client.Message) {
		if t.columns == nil {
			for _, c := range m.Schema.Columns {
				t.columns = append(t.columns, c.Name)
			}
		}
		for i := range m.Batch.Rows {
			row := map[string]any{}
			for k, c := range m.Schema.Columns {
				row[c.Name] = reflect.ValueOf(m.Batch.Cols[k]).Index(i).Interface()
			}
			if edit != nil {
				edit(row, m.Schema.Metadata)
			}
			t.Rows = append(t.Rows, row)
		}
	})
	return t, err
}

// Table is rows of objects.
type Table struct {
	columns []string
	Rows    []map[string]any
}

// Print prints the rows. A label or a subspace of −1 is all of them.
func (t *Table) Print(w io.Writer) error {
	out := command.NewTable(w, strings.ToUpper(strings.Join(t.columns, "\t")))
	for _, row := range t.Rows {
		for _, name := range t.columns {
			switch v := row[name].(type) {
			case float64:
				fmt.Fprintf(out, "%.4g\t", v)
			case int32:
				if v < 0 {
					fmt.Fprint(out, "all\t")
				} else {
					fmt.Fprintf(out, "%d\t", v)
				}
			default:
				fmt.Fprintf(out, "%v\t", v)
			}
		}
		fmt.Fprintln(out)
	}
	return out.Flush()
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
