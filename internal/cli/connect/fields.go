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

// Fields returns an option for each field of a request, as flight/api declares and describes it. A change has the name
// of a field; its Usage, Otherwise and OneOf replace those of the field unless they are empty.
func Fields(request any, changes ...command.Option) []command.Option {
	var options []command.Option
	for _, f := range api.Fields(request) {
		o := command.Option{
			Name: f.Name, Kind: kindOf(f.Type), Usage: api.WithWords(f.Help, f.Words), Otherwise: f.Default,
			Required: f.Required, OneOf: f.Words, List: isList(f.Type), Type: f.Type,
		}
		switch {
		case f.Type == reflect.TypeFor[api.ScheduleRef](), f.Type == reflect.TypeFor[[]api.ScheduleRef]():
			o.OneOf = []string{"edm"} // stored names are valid, too
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

// kindOf returns the kind of the option for a field of type t.
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

// isList reports whether a field of type t may be given as words separated by commas.
func isList(t reflect.Type) bool {
	switch t {
	case reflect.TypeFor[[]string](), reflect.TypeFor[[]api.ScheduleRef](), reflect.TypeFor[[]int](),
		reflect.TypeFor[[]float64]():
		return true
	}
	return false
}

// MakeCommand completes the command s, which calls an action that makes something. Its options are the request's
// fields, except a kind with one possible value, and [FolderOptions]. It shows progress under the word doing, then the
// reply.
func MakeCommand(s command.Spec, action string, request any, doing string, changes ...command.Option) command.Spec {
	options := slices.DeleteFunc(Fields(request, changes...), func(o command.Option) bool {
		return len(o.OneOf) == 1 && o.Name == "kind"
	})
	s.Options = slices.Concat(options, FolderOptions)
	s.Run = func(ctx context.Context, e command.Env) error {
		fields := e.Request(options)
		if kind, ok := request.(api.ScheduleKind); ok {
			fields["kind"] = kind.Kind()
		}
		return WithServer(ctx, e, func(c *client.Client) error {
			p := command.NewProgress(e.Err, e.Log, doing)
			defer p.Close()
			reply, err := c.Action(ctx, action, fields, func(m api.Meta) { ShowMeta(p, m) })
			if err != nil {
				return err
			}
			return command.PrintJSON(e.Out, reply)
		})
	}
	return s
}

// ListSpec returns the command `GROUP list`, which prints one line for each entry that a method of the client lists.
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
					for _, entry := range all {
						fmt.Fprintln(t, line(entry))
					}
					return t.Flush()
				})
			})
		},
	}
}

// Collect calls an operation that returns rows, shows its progress, and calls take with every message that has
// rows or is a warning.
func Collect(ctx context.Context, e command.Env, op string, fields map[string]any, doing string,
	take func(client.Message),
) error {
	return WithServer(ctx, e, func(c *client.Client) error {
		p := command.NewProgress(e.Err, e.Log, doing)
		defer p.Close()
		for m, err := range c.Get(ctx, op, fields) {
			if err != nil {
				return err
			}
			var notes []string
			if m.Meta["event"] == "start" && json.Unmarshal([]byte(m.Schema.Metadata["notes"]), &notes) == nil {
				Notes(e.Err, notes)
			}
			ShowMeta(p, m.Meta)
			if m.Batch.Rows > 0 || m.Meta["event"] == "warning" {
				take(m)
			}
		}
		return nil
	})
}

// Rows collects the rows of an operation.
func Rows(ctx context.Context, e command.Env, op string, fields map[string]any, doing string) (*Table, error) {
	t := &Table{}
	err := Collect(ctx, e, op, fields, doing, func(m client.Message) { t.Add(m.Schema, m.Batch) })
	return t, err
}

// Table is a reply's rows, each as an object with the names of the columns as keys.
type Table struct {
	columns  []string
	Metadata map[string]string // of the schema
	Rows     []map[string]any
}

// Add appends the rows of a batch.
func (t *Table) Add(s api.Schema, b api.Batch) {
	t.columns, t.Metadata = nil, s.Metadata
	for _, c := range s.Columns {
		t.columns = append(t.columns, c.Name)
	}
	for i := range b.Rows {
		row := map[string]any{}
		for k, name := range t.columns {
			row[name] = reflect.ValueOf(b.Cols[k]).Index(i).Interface()
		}
		t.Rows = append(t.Rows, row)
	}
}

// Print prints the table. A negative integer, the label or subspace that stands for all, is printed as "all".
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

// Notes prints the notes of a reply, one on each line.
func Notes(w io.Writer, notes []string) {
	for _, note := range notes {
		fmt.Fprintf(w, "note: %s\n", note)
	}
}

// ShowMeta shows the progress that a message reports: the steps of the current part, with the number of finished parts
// as a note, or the number of rows sent.
func ShowMeta(p *command.Progress, m api.Meta) {
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
