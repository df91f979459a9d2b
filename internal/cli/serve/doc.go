// Package serve has the command serve and the command that makes its tokens.
//
// Addresses that other machines can reach need TLS unless --insecure is given. While the server listens, the folder's
// lock has its location. Metrics are served only with --metrics.
//
// Begin reading at serve.go.
package serve
