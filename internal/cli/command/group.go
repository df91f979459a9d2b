package command

import "github.com/spf13/cobra"

// Group is a command that only has others.
type Group struct {
	Use, Short, Long, Example string
	Specs                     []Spec // of its commands that have settings
}

// Command returns the command.
func (g Group) Command() *cobra.Command {
	cmd := &cobra.Command{
		Use: g.Use, Short: g.Short, Long: g.Long, Example: g.Example, Args: groupArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, s := range g.Specs {
		cmd.AddCommand(s.Command())
	}
	return cmd
}

// groupArgs refuses words that a command group does not know.
func groupArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if args[0] == "recipe" {
		return Usagef(cmd, "recipes are done by `python -m anisoflight.recipe FILE` now, of the Python package")
	}
	var known []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			known = append(known, sub.Name())
		}
	}
	return Usagef(cmd, "unknown command %q%s", args[0], asking(args[0], known))
}
