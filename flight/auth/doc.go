// Package auth has bearer tokens with scopes, read from a file, and the TLS configuration of a server.
//
// A token is 256 random bits. A file of tokens has only their SHA-256, from which a token cannot be recovered. Every
// operation needs one scope, which the table of package api names. Files of tokens and certificates are read again when
// they change. If a changed file is invalid, the previous contents stay valid.
//
// Begin reading with Tokens.
package auth
