// Package command has what all commands share. A [Spec] describes a command with its settings, and an [Env] is what a
// running command is given. There are also usage errors, progress, output, and programs in Python.
//
// Every setting is an [Option]: it has a flag, an environment variable ANISOFLIGHT_NAME and a key in the configuration
// file. A flag wins over the environment, the environment over the file, and the file over the default. All values go
// through one parser, with the same errors. A setting that is not given is not part of a request: the engine knows the
// defaults.
//
// Begin reading at option.go, then settings.go and spec.go.
package command
