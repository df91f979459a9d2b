package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/cli/serve"
)

// newConfig makes the command that shows settings: below it is every command that has some, with the same flags.
// Without one it shows serve's.
func newConfig() *cobra.Command {
	parent := showSettings(serve.Spec, "config")
	parent.Use = "config [command]"
	parent.Short = "Print the settings in force and where each comes from"
	parent.Long = `Config resolves a command's settings as that command would (flag, then environment,
then file, then default) and prints every value with its source. It takes the
command's own flags and does nothing else. Without a command it shows serve's.`
	parent.Example = `  anisoflight config
  ANISOFLIGHT_LISTEN=:9000 anisoflight config serve --data data
  anisoflight config train --config configs/digits-pretrain.yaml --lr 0.001
  anisoflight config --json`
	for _, s := range specs() {
		parent.AddCommand(showSettings(s, "config "+s.Use))
	}
	for _, g := range groups {
		path := "config " + g.Use
		cmd := command.Group{
			Use: g.Use, Short: "Print the settings of the commands of " + g.Use, Example: "  anisoflight " + path + " list",
		}.Command()
		for _, s := range g.Specs {
			cmd.AddCommand(showSettings(s, path+" "+s.Use))
		}
		parent.AddCommand(cmd)
	}
	return parent
}

// showSettings makes the command that shows those of a command; path is what it is called by.
func showSettings(s command.Spec, path string) *cobra.Command {
	cmd := &cobra.Command{
		Use:     s.Use,
		Short:   "Print the settings of " + s.Use,
		Example: "  anisoflight " + path,
		Args:    command.NoArgs,
	}
	s.Flags(cmd)
	asJSON := cmd.Flags().Bool("json", false, "print JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		e, err := s.Prepare(cmd)
		if err != nil {
			return err
		}
		e.JSON = *asJSON
		settings := settingsJSON(e.Values)
		return e.Show(settings, func(w io.Writer) error { return printSettings(w, settings, e.Values) })
	}
	return cmd
}

func printSettings(w io.Writer, settings map[string]settingJSON, order []command.Value) error {
	t := command.NewTable(w, "SETTING\tVALUE\tSOURCE")
	for _, v := range order {
		s := settings[v.Name]
		value, source := cmp.Or(s.Otherwise, "-"), s.Source
		if s.Value != nil {
			raw, err := json.Marshal(s.Value)
			if err != nil {
				return err
			}
			value = string(raw)
		} else if v.Required {
			source = "missing"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", v.Name, value, source)
	}
	return t.Flush()
}

type settingJSON struct {
	Value     any    `json:"value"`               // null if the command does not decide it
	Otherwise string `json:"otherwise,omitempty"` // what holds then, in words
	Source    string `json:"source"`
}

func settingsJSON(values []command.Value) map[string]settingJSON {
	out := map[string]settingJSON{}
	for _, v := range values {
		s := settingJSON{Value: v.Value, Source: v.Source}
		switch {
		case v.Value == nil:
			s.Otherwise = v.Otherwise
		case v.Secret:
			s.Value = "(secret)"
		}
		out[v.Name] = s
	}
	return out
}
