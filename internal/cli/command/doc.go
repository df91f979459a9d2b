// Package command is what the commands stand on: a [Spec] describes one with its settings,
// an [Env] is what it has at hand while it runs. Beside them lies what commands share: wrong
// usage, progress, output, and programs in Python.
//
// Every setting is an [Option]: it has a flag, an environment variable ANISOFLIGHT_NAME and a key in the configuration
// file. The first of these that is given wins, before the default. All three go through one
// parser, with the same errors. A setting that nobody gave is not part of a request: the
// engine knows the defaults.
//
// It knows no command, no server and no device.
//
// Begin reading at option.go, then settings.go and spec.go.
package command
