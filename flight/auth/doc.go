// Package auth decides who may ask for what: bearer tokens with scopes, read from a file, and the TLS of the server.
//
// A token is 256 random bits; a Tokens file holds its SHA-256 alone, which is enough for a secret that nobody can
// guess, and gives nothing away. Each operation needs exactly one scope, which the table of package api says. Files of
// tokens and certificates are read again when they change, and a broken file leaves the last good one in force.
//
// Begin reading with Tokens.
package auth
