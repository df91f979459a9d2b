// Package cli is the command line: one file per command, each a thin shell around
// the packages that do the work.
//
// internal/cli/command has what all of them share. Commands that work on a data folder are
// clients of a server, which internal/cli/connect finds. What the user leaves open is not
// sent, so that defaults live in one place, with the engine. The command serve and
// those on schedules have packages of their own.
//
// Results go to standard output, logs and progress to standard error. The exit
// status is 0 on success, 1 on failure, 2 on wrong usage, 130 after an interrupt.
//
// Begin reading at cli.go, then internal/cli/command and any command.
package cli
