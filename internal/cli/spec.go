package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/anisoflight/anisoflight/flight/api"
)

// spec describes a command with settings, so that `config` can show them without
// running it.
type spec struct {
	use, short, long, example string
	args                      string // what its arguments are, such as FILE...; none if empty
	options                   []option
	json                      bool // the command has a flag --json, which is no setting
	stores                    bool // the command makes the data folder if it is missing
	run                       func(ctx context.Context, e env) error
}

// env is what a running command has at hand.
type env struct {
	*settings
	cmd  *cobra.Command
	out  io.Writer // results
	err  io.Writer // progress
	log  *slog.Logger
	args []string
	json bool // results as JSON

	stores bool // the data folder is made if it is missing
}

// common are the settings of every command.
var common = []option{
	{name: "log_level", def: "info", usage: "log this and worse: `level` debug, info, warn or error"},
	{name: "log_format", def: "text", usage: "`format` of the log: text or json"},
}

func (s spec) all() []option { return slices.Concat(s.options, common) }

func (s spec) command() *cobra.Command {
	cmd := &cobra.Command{Use: s.use, Short: s.short, Long: s.long, Example: s.example, Args: noArgs}
	if s.args != "" {
		cmd.Use += " " + s.args
		one, several := strings.CutSuffix(s.args, "...")
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usagef(cmd, "%s is missing", one)
			case len(args) > 1 && !several:
				return usagef(cmd, "unexpected argument %q", args[1])
			}
			return nil
		}
	}
	s.flags(cmd)
	asJSON := new(bool)
	if s.json {
		cmd.Flags().BoolVar(asJSON, "json", false, "print JSON")
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		e, err := s.prepare(cmd)
		if err != nil {
			return err
		}
		e.json, e.args, e.stores = *asJSON, args, s.stores
		for _, v := range e.values {
			if v.needed && (v.value == nil || v.value == "") {
				return usagef(cmd, "--%s is missing", v.flag())
			}
		}
		return e.nameFlag(s.run(cmd.Context(), e))
	}
	return cmd
}

// nameFlag names the field of a request that the server refuses as the flag that it was given by.
func (e env) nameFlag(err error) error {
	var refused *api.Error
	if !errors.As(err, &refused) {
		return err
	}
	for _, v := range e.values {
		at := strings.Index(" "+refused.Message, " "+v.name+" must ")
		if at >= 0 && strings.HasPrefix(v.source, "flag ") {
			named := *refused
			named.Message = refused.Message[:at] + "--" + v.flag() + refused.Message[at+len(v.name):]
			return &named
		}
	}
	return err
}

// flags defines the flags of all the command's settings.
func (s spec) flags(cmd *cobra.Command) {
	cmd.Flags().SortFlags = false
	for _, o := range s.all() {
		o.register(cmd.Flags())
	}
	cmd.Flags().String("config", "", "YAML `file` with settings; environment ANISOFLIGHT_CONFIG")
}

// prepare resolves the settings and sets the log up.
func (s spec) prepare(cmd *cobra.Command) (env, error) {
	set, err := resolve(s.all(), cmd.Flags())
	if err != nil {
		return env{}, usagef(cmd, "%w", err)
	}
	log, err := newLogger(cmd.ErrOrStderr(), set.text("log_format"), set.text("log_level"))
	if err != nil {
		return env{}, usagef(cmd, "%w", err)
	}
	return env{settings: set, cmd: cmd, out: cmd.OutOrStdout(), err: cmd.ErrOrStderr(), log: log}, nil
}

func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef(cmd, "unexpected argument %q", args[0])
	}
	return nil
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
