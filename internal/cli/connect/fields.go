package connect

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"reflect"
	"slices"

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
		case f.Type == reflect.TypeFor[api.Grid]():
			o.Usage += ", or JSON"
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
		reflect.TypeFor[[]float64](), reflect.TypeFor[api.Levels]():
		return true
	}
	return false
}

// Without returns options except those of some names.
func Without(options []command.Option, names ...string) []command.Option {
	return slices.DeleteFunc(slices.Clone(options), func(o command.Option) bool { return slices.Contains(names, o.Name) })
}

// Making returns the command that calls an action which makes something: its options are the fields of the request,
// except those of one possible value, and those of a data folder. It shows the progress of what is being done, and then
// the reply as text does.
func Making[R any](s command.Spec, action string, request any, doing string, text func(io.Writer, R) error,
	changes ...command.Option,
) command.Spec {
	fields := slices.DeleteFunc(Fields(request, changes...), func(o command.Option) bool {
		return len(o.OneOf) == 1 && o.Name == "kind"
	})
	s.Options = slices.Concat(fields, FolderOptions)
	s.Run = func(ctx context.Context, e command.Env) error {
		given := e.Request(fields)
		if kind, ok := request.(api.ScheduleKind); ok {
			given["kind"] = kind.Kind()
		}
		var made R
		if err := Perform(ctx, e, action, given, doing, &made); err != nil {
			return err
		}
		return e.Show(made, func(w io.Writer) error { return text(w, made) })
	}
	return s
}

// PrintReply prints a reply that has no form of its own.
func PrintReply(w io.Writer, reply map[string]any) error { return command.PrintJSON(w, reply) }

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
			all, err := List(ctx, e, method)
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
		},
	}
}
