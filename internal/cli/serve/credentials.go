package serve

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/anisoflight/anisoflight/flight/auth"
	"github.com/anisoflight/anisoflight/internal/cli/command"
)

// NewToken returns the command group that makes tokens for serve --tokens.
func NewToken() *cobra.Command {
	group := command.Group{
		Use:   "token",
		Short: "Make tokens for serve --tokens",
		Long: `Token makes bearer tokens for a server with --tokens FILE. The file has a line for each
token: a name, the scopes, and the SHA-256 of the token. The token itself is printed once
and not stored. If its line is deleted, the server refuses it within a second, without a
restart.

The scope read looks at what is stored; sample evaluates networks; train makes and
changes runs, data sets, schedules, bases and models; admin loads, unloads and deletes.`,
		Example: `  anisoflight token new --name notebook --scopes read,sample`,
	}.Command()
	var name, scopes string
	cmd := &cobra.Command{
		Use:   "new",
		Short: "Print a new token, and the line for the file",
		Example: `  anisoflight token new --name notebook --scopes read,sample
  anisoflight token new --name notebook --scopes read,sample >>tokens`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := auth.ParseScopes(scopes)
			if err != nil {
				return command.Usagef(cmd, "%w", err)
			}
			token, line, err := auth.NewToken(name, list)
			if err != nil {
				return command.Usagef(cmd, "%w", err)
			}
			fmt.Fprintf(cmd.ErrOrStderr(),
				"The token (it is not shown again):\n\n  %s\n\nThe line for the file of serve --tokens:\n\n", token)
			_, err = fmt.Fprintln(cmd.OutOrStdout(), line)
			return err
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "`name` of the holder in logs and limits")
	cmd.Flags().StringVar(&scopes, "scopes", "read,sample,train,admin", "`scopes` of the token")
	_ = cmd.MarkFlagRequired("name")
	group.AddCommand(cmd)
	return group
}
