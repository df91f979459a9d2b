package connect

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/client"
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// Fields returns an option for each field of a request, as flight/api declares and describes it. The changes are
// options by the fields' names: what they say replaces what the field says.
func Fields(request any, changes ...command.Option) []command.Option {
	var options []command.Option
	for _, f := range api.Fields(request) {
		o := command.Option{
			Name: f.Name, Kind: kindOf(f.Type), Usage: api.WithWords(f.Help, f.Words), Otherwise: f.Default,
			Required: f.Required, OneOf: f.Words, List: isList(f.Type),
		}
		switch {
		case f.Type == reflect.TypeFor[api.ScheduleRef](), f.Type == reflect.TypeFor[[]api.ScheduleRef]():
			o.OneOf = []string{"edm"} // and the names that there are
		case f.Name == "basis" && len(f.Words) == 0:
			o.OneOf = basis.Names(nil)
		}
		for _, change := range changes {
			if change.Name == f.Name {
				o.Usage, o.Otherwise = cmp.Or(change.Usage, o.Usage), cmp.Or(change.Otherwise, o.Otherwise)
				if change.OneOf != nil {
					o.OneOf = change.OneOf
					o.Usage = api.WithWords(o.Usage, o.OneOf)
				}
			}
		}
		options = append(options, o)
	}
	return options
}

// kindOf returns the kind of an option by the type of its field.
func kindOf(t reflect.Type) command.Kind {
	if t.Kind() == reflect.Pointer && t.Elem().Kind() != reflect.Struct {
		t = t.Elem()
	}
	switch t.Kind() {
	case reflect.String:
		return command.Text
	case reflect.Bool:
		return command.Toggle
	case reflect.Float64:
		return command.Number
	case reflect.Uint64:
		return command.Seed
	case reflect.Int, reflect.Int32, reflect.Int64:
		return command.Whole
	}
	return command.Object
}

// isList reports whether a field may be given as words with commas between.
func isList(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[[]string](), reflect.TypeFor[[]api.ScheduleRef](), reflect.TypeFor[[]int](),
		reflect.TypeFor[[]float64]():
		return true
	}
	return false
}

// OmitOptions returns options except those of some names.
func OmitOptions(options []command.Option, names ...string) []command.Option {
	return slices.DeleteFunc(slices.Clone(options), func(o command.Option) bool { return slices.Contains(names, o.Name) })
}

// MakeCommand returns the command that calls an action which makes something: its options are the fields of the request,
// except those of one possible value, and those of a data folder. It shows the progress of what is being done, and then
// the reply.
func MakeCommand(s command.Spec, action string, request any, doing string, changes ...command.Option) command.Spec {
	fields := slices.DeleteFunc(Fields(request, changes...), func(o command.Option) bool {
		return len(o.OneOf) == 1 && o.Name == "kind"
	})
	s.Options = slices.Concat(fields, FolderOptions)
	s.Run = func(ctx context.Context, e command.Env) error {
		given := e.Request(fields)
		if kind, ok := request.(api.ScheduleKind); ok {
			given["kind"] = kind.Kind()
		}
		return WithServer(ctx, e, func(c *client.Client) error {
			p := command.NewProgress(e.Err, e.Log, doing)
			defer p.Close()
			var made json.RawMessage
			if err := Act(ctx, c, action, given, func(m api.Meta) { showMeta(p, m) }, &made); err != nil {
				return err
			}
			return command.PrintJSON(e.Out, made)
		})
	}
	return s
}

// ListSpec is the command `GROUP list`, which prints a line for each one that a method of the client lists.
func ListSpec[R any](what, group string, method func(*client.Client, context.Context) ([]R, error), head string,
	line func(R) string,
) command.Spec {
	return command.Spec{
		Use:     "list",
		Short:   "List the " + what,
		Example: "  anisoflight " + group + " list --data data",
		Options: FolderOptions,
		JSON:    true,
		Run: func(ctx context.Context, e command.Env) error {
			return WithServer(ctx, e, func(c *client.Client) error {
				all, err := method(c, ctx)
				if err != nil {
					return err
				}
				return e.Show(all, func(w io.Writer) error {
					t := command.NewTable(w, head)
					for _, one := range all {
						fmt.Fprintln(t, line(one))
					}
					return t.Flush()
				})
			})
		},
	}
}

// Act does an action and decodes its reply into result, which may be nil.
func Act(ctx context.Context, c *client.Client, name string, fields map[string]any, progress func(api.Meta),
	result any,
) error {
	reply, err := c.Action(ctx, name, fields, progress)
	if err != nil || result == nil {
		return err
	}
	return json.Unmarshal(reply, result)
}

// Collect runs an operation that returns rows, shows the progress, and hands every message with rows to take.
func Collect(ctx context.Context, e command.Env, op string, fields map[string]any, doing string,
	take func(client.Message),
) error {
	return WithServer(ctx, e, func(c *client.Client) error {
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
