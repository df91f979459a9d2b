// Package flight is the service: it serves an engine over Arrow Flight, as the contract in package api has it.
//
// It knows requests and streams, not what their columns mean. A call passes admit, which finds out who calls, and run,
// which counts it and makes a status of its error (admit.go, call.go). The calls share one way from api's schemas and
// batches to Arrow's (flight/columns), one way to run work next to a stream and to write it (stream.go), and one reader
// of what clients stream (put.go).
//
// Memory is bounded by gRPC's limit of a message and by one budget, in bytes, of all messages that are received and not
// done with: guardedStream takes them, and the end of a batch or of its call gives them back.
//
// Invariants: one goroutine sends on a stream; the schema and a batch of no rows leave before any work; something
// leaves at least every half second; the last message of a stream that ended well says so; no message is metadata
// alone; no upload is committed unless its client ended it; the work of a call ends with the call; what a panic or an
// unexpected error says stays in the log.
//
// Begin reading with New, then call.go and actions.go.
package flight
