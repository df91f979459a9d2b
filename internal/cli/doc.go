// Package cli is the command line. Each command has a file; other packages do the work.
//
// internal/cli/command has what all commands share. Commands that work on a data folder are clients of a server, which
// internal/cli/connect finds. A setting that the user does not give is not sent: the engine alone knows the defaults.
// The command serve and the commands on schedules have packages of their own.
//
// Results go to standard output, logs and progress to standard error. The exit status is 0 on success, 1 on failure, 2
// on wrong usage, and 130 after an interrupt.
//
// Begin reading at cli.go, then internal/cli/command and any command.
package cli
