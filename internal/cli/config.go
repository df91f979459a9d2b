package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// newConfig makes the command that shows settings: one subcommand for each command
// that has some, with the same flags. Without a subcommand it shows serve's.
func newConfig() *cobra.Command {
	parent := showSettings(serveSpec)
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
		child.Short = "Print the settings of " + s.use
		parent.AddCommand(child)
	}
	return parent
}

func showSettings(s spec) *cobra.Command {
	cmd := &cobra.Command{
		Use:     s.use,
		Example: "  anisoflight config " + s.use,
		Args:    noArgs,
	}
	s.flags(cmd)
	asJSON := cmd.Flags().Bool("json", false, "print JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		e, err := s.prepare(cmd)
		if err != nil {
			return err
		}
		if *asJSON {
			return printJSON(e.out, settingsJSON(e.values))
		}
		return printSettings(e.out, e.values)
	}
	return cmd
}

func printSettings(w io.Writer, values []value) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "SETTING\tVALUE\tSOURCE")
	for _, v := range values {
		shown := "(unset)"
		if v.value != nil && v.secret {
			shown = "(secret)"
		} else if v.value != nil {
			raw, err := json.Marshal(v.value)
			if err != nil {
				return err
			}
			shown = string(raw)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", v.name, shown, v.source)
	}
	return t.Flush()
}

type settingJSON struct {
	Value  any    `json:"value"`
	Source string `json:"source"`
}

func settingsJSON(values []value) map[string]settingJSON {
	out := map[string]settingJSON{}
	for _, v := range values {
		shown := v.value
		if shown != nil && v.secret {
			shown = "(secret)"
		}
		out[v.name] = settingJSON{shown, v.source}
	}
	return out
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
