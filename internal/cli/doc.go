// Package cli is the command line: one file per command, each a thin shell around
// the packages that do the work.
//
// Every setting is an [option]: it has a flag, an environment variable
// ANISOFLIGHT_NAME and a key in the configuration file, and the first of these
// that is given wins. `anisoflight config` prints the result and where each value
// comes from.
//
// Commands that work on a data folder are clients of a server, through flight/client:
// of the one that --server names, of the one that holds the folder's lock, or of one in
// this process. There is no other way to the engine. What the user leaves open is not
// sent, so that defaults live in one place, with the engine.
//
// Results go to standard output, logs and progress to standard error. The exit
// status is 0 on success, 1 on failure, 2 on wrong usage, 130 after an interrupt.
//
// It may import everything. Begin reading at cli.go, then option.go, connect.go and any command.
package cli
