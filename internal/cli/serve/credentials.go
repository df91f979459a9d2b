package serve

import (
	"context"
	"fmt"

	"github.com/anisoflight/anisoflight/flight/auth"
	"github.com/anisoflight/anisoflight/internal/cli/command"
)

// TokenGroup has the command that makes tokens for serve --tokens.
var TokenGroup = command.Group{
	Use:   "token",
	Short: "Make tokens for serve --tokens",
	Long: `Token makes bearer tokens for a server with --tokens FILE. The file has a line for each
token: a name, the scopes, and the SHA-256 of the token. The token itself is printed once
and not stored. If its line is deleted, the server refuses it within a second, without a
restart.

The scope read looks at what is stored; sample evaluates networks; train makes and
changes runs, data sets, schedules, bases and models; admin loads, unloads and deletes.`,
	Example: `  anisoflight token new --name notebook --scopes read,sample`,
	Specs: []command.Spec{{
		Use:   "new",
		Short: "Print a new token, and the line for the file",
		Example: `  anisoflight token new --name notebook --scopes read,sample
  anisoflight token new --name notebook --scopes read,sample >>tokens`,
		Options: []command.Option{
			{Name: "name", Required: true, Usage: "`name` of the holder in logs and limits"},
			{Name: "scopes", Default: "read,sample,train,admin", Usage: "`scopes` of the token"},
		},
		Run: func(_ context.Context, e command.Env) error {
			scopes, err := auth.ParseScopes(e.Text("scopes"))
			if err != nil {
				return command.Usagef(e.Cmd, "%w", err)
			}
			token, line, err := auth.NewToken(e.Text("name"), scopes)
			if err != nil {
				return command.Usagef(e.Cmd, "%w", err)
			}
			fmt.Fprintf(e.Err, "The token (it is not shown again):\n\n  %s\n\nThe line for the file of serve --tokens:\n\n",
				token)
			_, err = fmt.Fprintln(e.Out, line)
			return err
		},
	}},
}
