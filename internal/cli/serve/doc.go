// Package serve is the command serve, with the commands that make what it asks for: tokens and certificates.
//
// Addresses that other machines reach need TLS unless --insecure is given. The folder's lock names the server from when
// it listens until it shuts down. Metrics and traces leave the process only where they are asked for.
//
// It may import internal/cli/command, internal/cli/connect and flight. Begin reading at serve.go.
package serve
