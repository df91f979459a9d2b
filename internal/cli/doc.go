// Package cli is the command line: one file per command, each a thin shell around
// the packages that do the work.
//
// Every setting is an [option]: it has a flag, an environment variable
// ANISOFLIGHT_NAME and a key in the configuration file, and the first of these
// that is given wins. `anisoflight config` prints the result and where each value
// comes from. Training and sampling happen in this process, on the data folder,
// through the same engine that serves clients; what the user leaves open is not
// sent to it, so that defaults live in one place, with the engine.
//
// Results go to standard output, logs and progress to standard error. The exit
// status is 0 on success, 1 on failure, 2 on wrong usage, 130 after an interrupt.
//
// It may import everything. Begin reading at cli.go, then option.go and any command.
package cli
