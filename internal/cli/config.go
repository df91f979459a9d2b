package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/cli/serve"
)

// newConfig makes the command that shows settings: one subcommand for each command
// that has some, with the same flags. Without a subcommand it shows serve's.
func newConfig() *cobra.Command {
	parent := showSettings(serve.Spec)
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
		child := showSettings(s)
		child.Short = "Print the settings of " + s.Use
		parent.AddCommand(child)
	}
	return parent
}

func showSettings(s command.Spec) *cobra.Command {
	cmd := &cobra.Command{
		Use:     s.Use,
		Example: "  anisoflight config " + s.Use,
		Args:    command.NoArgs,
	}
	s.Flags(cmd)
	asJSON := cmd.Flags().Bool("json", false, "print JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		e, err := s.Prepare(cmd)
		if err != nil {
			return err
		}
		if *asJSON {
			return command.PrintJSON(e.Out, settingsJSON(e.Values))
		}
		return printSettings(e.Out, e.Values)
	}
	return cmd
}

func printSettings(w io.Writer, values []command.Value) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "SETTING\tVALUE\tSOURCE")
	for _, v := range values {
		shown := "(unset)"
		if v.Value != nil && v.Secret {
			shown = "(secret)"
		} else if v.Value != nil {
			raw, err := json.Marshal(v.Value)
			if err != nil {
				return err
			}
			shown = string(raw)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", v.Name, shown, v.Source)
	}
	return t.Flush()
}

type settingJSON struct {
	Value  any    `json:"value"`
	Source string `json:"source"`
}

func settingsJSON(values []command.Value) map[string]settingJSON {
	out := map[string]settingJSON{}
	for _, v := range values {
		shown := v.Value
		if shown != nil && v.Secret {
			shown = "(secret)"
		}
		out[v.Name] = settingJSON{shown, v.Source}
	}
	return out
}
