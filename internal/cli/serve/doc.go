// Package serve is the command serve, with the command that makes the tokens it asks for.
//
// Addresses that other machines reach need TLS unless --insecure is given. The folder's lock names the server from when
// it listens until it shuts down. Metrics leave the process only if they are asked for.
//
// Begin reading at serve.go.
package serve
