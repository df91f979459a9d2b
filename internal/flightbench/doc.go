// Package flightbench measures how fast tables travel: over the project's own service, over a service made of arrow-go's
// stock reader and writer, and, for comparison, over a bare TCP connection and from memory to memory.
//
// The service is the real one; only its engine is replaced by one that has rows at hand, so that nothing but the transport
// is measured. Everything runs in rounds: each takes every measure once, so that what else the machine does meets all of
// them alike, and ratios are taken within a round. Clients are a Go program and pyarrow; the latter runs
// `python -m anisoflight.flightbench` and is told by lines of JSON what to do.
//
// It imports flight, flight/api, flight/tensor, flight/wire and internal/engine. Begin reading with Run.
package flightbench
