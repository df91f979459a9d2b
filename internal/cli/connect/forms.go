package connect

import (
	"context"
	"fmt"
	"io"

	"github.com/anisoflight/anisoflight/flight/client"
	"github.com/anisoflight/anisoflight/internal/cli/command"
)

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

// Makes runs an action that Makes something and says what: an action of a kind, where it has kinds, with the given ones
// of these fields. Meanwhile it shows the progress of what is being done.
func Makes[R any](action, kind string, request []command.Option, doing string, text func(io.Writer, R) error,
) func(context.Context, command.Env) error {
	return func(ctx context.Context, e command.Env) error {
		fields := e.Request(request)
		if kind != "" {
			fields["kind"] = kind
		}
		var made R
		if err := Perform(ctx, e, action, fields, doing, &made); err != nil {
			return err
		}
		return e.Show(made, func(w io.Writer) error { return text(w, made) })
	}
}

// PrintReply prints a reply that has no form of its own.
func PrintReply(w io.Writer, reply map[string]any) error { return command.PrintJSON(w, reply) }
