package serve

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/anisoflight/anisoflight/flight/auth"
	"github.com/anisoflight/anisoflight/internal/cli/command"
)

// NewCertificate makes the command that writes certificates for serve --tls-cert.
func NewCertificate() *cobra.Command {
	var hosts, client, out string
	var days int
	cmd := &cobra.Command{
		Use:   "certificate",
		Short: "Write TLS certificates of one's own for serve",
		Long: `Certificate makes an authority and, signed by it, a certificate for a server and one
for a client, for machines that have no certificate from elsewhere. It writes

  ca.pem                         what clients trust (tls_root_certs), and --client-ca
  server.pem, server-key.pem     --tls-cert and --tls-key
  client.pem, client-key.pem     a client's, for servers with --client-ca

The authority's own key is not kept: run the command again before the certificates end,
and give clients the new ca.pem.`,
		Example: `  anisoflight certificate --hosts gpu1.lab,10.0.0.5,localhost --out certs
  anisoflight serve --listen :8815 --tls-cert certs/server.pem --tls-key certs/server-key.pem --tokens tokens`,
		Args: command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if days < 1 {
				return command.Usagef(cmd, "--days must be at least 1, got %d", days)
			}
			return writeCertificates(out, strings.Split(hosts, ","), client, time.Duration(days)*24*time.Hour)
		},
	}
	cmd.Flags().StringVar(&hosts, "hosts", "localhost,127.0.0.1,::1",
		"`names` and addresses that clients reach the server by")
	cmd.Flags().StringVar(&client, "client", "client", "`name` of the client")
	cmd.Flags().StringVar(&out, "out", "certs", "`folder` to write to, which must not exist")
	cmd.Flags().IntVar(&days, "days", 365, "`days` for which the certificates are good")
	return cmd
}

func writeCertificates(folder string, hosts []string, client string, life time.Duration) error {
	authority, err := auth.NewAuthority(life)
	if err != nil {
		return err
	}
	server, serverKey, err := authority.Server(hosts...)
	if err != nil {
		return fmt.Errorf("a certificate for %s: %w", strings.Join(hosts, ","), err)
	}
	user, userKey, err := authority.Client(client)
	if err != nil {
		return fmt.Errorf("a certificate for %s: %w", client, err)
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	for name, text := range map[string][]byte{
		"ca.pem": authority.Certificate(), "server.pem": server, "server-key.pem": serverKey, "client.pem": user,
		"client-key.pem": userKey,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

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
