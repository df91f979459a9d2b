package serve

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/anisoflight/anisoflight/flight/auth"
	"github.com/anisoflight/anisoflight/internal/cli/command"
)

// NewToken makes the command group for the tokens of serve --tokens.
func NewToken() *cobra.Command {
	group := command.Group{
		Use:   "token",
		Short: "Make tokens for serve --tokens",
		Long: `Token makes the bearer tokens that a server started with --tokens FILE asks for. The
file has a line for each token: a name, the scopes, and the token's SHA-256. The token
itself is printed once and stored nowhere; deleting its line ends it, within a second
and without a restart.

The scopes: read looks at what is stored; sample evaluates networks; train makes and
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
				"The token, which is not shown again:\n\n  %s\n\nThe line for the file of serve --tokens:\n\n", token)
			_, err = fmt.Fprintln(cmd.OutOrStdout(), line)
			return err
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "`name` that logs and limits know the holder by")
	cmd.Flags().StringVar(&scopes, "scopes", "read,sample,train,admin", "`scopes` that the token is good for")
	_ = cmd.MarkFlagRequired("name")
	group.AddCommand(cmd)
	return group
}
