package command

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"slices"

	"github.com/spf13/cobra"
)

// Spec describes a command with settings.
type Spec struct {
	Use, Short, Long, Example string
	Args                      string // name of its one argument, such as FOLDER; empty if it has none
	Options                   []Option
	JSON                      bool // the command has a flag --json, which is not a setting
	Stores                    bool // the command makes the data folder if it is missing
	Run                       func(ctx context.Context, e Env) error
}

// Env is what a running command is given.
type Env struct {
	*Settings
	Cmd  *cobra.Command
	Out  io.Writer // for results
	Err  io.Writer // for progress
	Log  *slog.Logger
	Args []string
	JSON bool // print results as JSON

	Stores bool // as in Spec
}

// common has the settings of every command.
var common = []Option{
	{
		Name: "log_level", Default: "info", Usage: "lowest `level` to log: debug, info, warn or error",
		OneOf: []string{"debug", "info", "warn", "error"},
	},
	{Name: "log_format", Default: "text", Usage: "`format` of the log: text or json", OneOf: []string{"text", "json"}},
}

// All returns the settings of the command, including those of every command.
func (s Spec) All() []Option { return slices.Concat(s.Options, common) }

// Command returns the cobra command, which resolves its settings before it runs.
func (s Spec) Command() *cobra.Command {
	cmd := &cobra.Command{Use: s.Use, Short: s.Short, Long: s.Long, Example: s.Example, Args: NoArgs}
	if s.Args == "" {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	} else {
		cmd.Use += " " + s.Args
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			switch len(args) {
			case 0:
				return Usagef(cmd, "%s is missing", s.Args)
			case 1:
				return nil
			}
			return Usagef(cmd, "unexpected argument %q", args[1])
		}
	}
	cmd.Flags().SortFlags = false
	for _, o := range s.All() {
		o.register(cmd.Flags())
		if err := cmd.RegisterFlagCompletionFunc(o.Flag(), o.complete); err != nil {
			panic(err) // two options of one name
		}
	}
	cmd.Flags().String("config", "", "YAML `file` with settings; environment ANISOFLIGHT_CONFIG")
	e := Env{Stores: s.Stores}
	if s.JSON {
		cmd.Flags().BoolVar(&e.JSON, "json", false, "print JSON")
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		e.Cmd, e.Out, e.Err, e.Args = cmd, cmd.OutOrStdout(), cmd.ErrOrStderr(), args
		if e.Settings, err = Resolve(s.All(), cmd.Flags()); err == nil {
			e.Log, err = newLogger(e.Err, e.Text("log_format"), e.Text("log_level"))
		}
		if err != nil {
			return Usagef(cmd, "%w", err)
		}
		for _, o := range s.Options {
			if value := e.Value(o.Name); o.Required && (value == nil || value == "") {
				return Usagef(cmd, "--%s is missing", o.Flag())
			}
		}
		return s.Run(cmd.Context(), e)
	}
	return cmd
}

func newLogger(w io.Writer, format, level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, fmt.Errorf("--log-level must be debug, info, warn or error, got %q", level)
	}
	opts := &slog.HandlerOptions{Level: l}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, opts)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, opts)), nil
	}
	return nil, fmt.Errorf("--log-format must be text or json, got %q", format)
}
