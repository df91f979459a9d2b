// Package servebench measures what the service adds to sampling, and what requests gain that share their evaluations.
//
// The server, its client and the engine without either are in one process, on one device and one folder with a network of
// random weights. Everything runs in rounds, each of which takes every measure once, in turning order; ratios are taken
// within a round, so that what else the machine does meets all of them alike.
//
// It imports flight, flight/client, internal/engine and what makes a model's folder. Begin reading with Run.
package servebench
