package command

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// Spec describes a command with settings, so that `config` can show them without
// running it.
type Spec struct {
	Use, Short, Long, Example string
	Args                      string // what its arguments are, such as FILE...; none if empty
	Options                   []Option
	JSON                      bool // the command has a flag --json, which is no setting
	Stores                    bool // the command makes the data folder if it is missing
	Run                       func(ctx context.Context, e Env) error
}

// Env is what a running command has at hand.
type Env struct {
	*Settings
	Cmd  *cobra.Command
	Out  io.Writer // results
	Err  io.Writer // progress
	Log  *slog.Logger
	Args []string
	JSON bool // results as JSON

	Stores bool // the data folder is made if it is missing
}

// common are the settings of every command.
var common = []Option{
	{
		Name: "log_level", Default: "info", Usage: "log this and worse: `level` debug, info, warn or error",
		OneOf: []string{"debug", "info", "warn", "error"},
	},
	{Name: "log_format", Default: "text", Usage: "`format` of the log: text or json", OneOf: []string{"text", "json"}},
}

// All returns the settings of the command, those of every command included.
func (s Spec) All() []Option { return slices.Concat(s.Options, common) }

// Command returns the command, which resolves its settings before it runs.
func (s Spec) Command() *cobra.Command {
	cmd := &cobra.Command{Use: s.Use, Short: s.Short, Long: s.Long, Example: s.Example, Args: NoArgs}
	if s.Args != "" {
		cmd.Use += " " + s.Args
		one, several := strings.CutSuffix(s.Args, "...")
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return Usagef(cmd, "%s is missing", one)
			case len(args) > 1 && !several:
				return Usagef(cmd, "unexpected argument %q", args[1])
			}
			return nil
		}
	}
	s.Flags(cmd)
	if s.Args == "" {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	asJSON := new(bool)
	if s.JSON {
		cmd.Flags().BoolVar(asJSON, "json", false, "print JSON")
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		e, err := s.Prepare(cmd)
		if err != nil {
			return err
		}
		e.JSON, e.Args, e.Stores = *asJSON, args, s.Stores
		for _, v := range e.Values {
			if v.Required && (v.Value == nil || v.Value == "") {
				return Usagef(cmd, "--%s is missing", v.Flag())
			}
		}
		return s.Run(cmd.Context(), e)
	}
	return cmd
}

// Flags defines the flags of all the command's settings.
func (s Spec) Flags(cmd *cobra.Command) {
	cmd.Flags().SortFlags = false
	for _, o := range s.All() {
		o.register(cmd.Flags())
		if err := cmd.RegisterFlagCompletionFunc(o.Flag(), o.complete); err != nil {
			panic(err) // two options of one name
		}
	}
	cmd.Flags().String("config", "", "YAML `file` with settings; environment ANISOFLIGHT_CONFIG")
}

// Prepare resolves the settings and sets the log up.
func (s Spec) Prepare(cmd *cobra.Command) (Env, error) {
	set, err := Resolve(s.All(), cmd.Flags())
	if err != nil {
		return Env{}, Usagef(cmd, "%w", err)
	}
	log, err := newLogger(cmd.ErrOrStderr(), set.Text("log_format"), set.Text("log_level"))
	if err != nil {
		return Env{}, Usagef(cmd, "%w", err)
	}
	return Env{Settings: set, Cmd: cmd, Out: cmd.OutOrStdout(), Err: cmd.ErrOrStderr(), Log: log}, nil
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

// onTerminal reports whether w is a terminal, where a progress bar makes sense.
func onTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
