// Package flight is the service: it serves an engine over Arrow Flight, as the contract in package api has it.
//
// It knows requests and streams, not what their columns mean. DoAction, DoGet, DoExchange, DoPut and the calls that
// describe are one small file each; they share one way from api's schemas and batches to Arrow's (flight/columns), one
// way to run work beside a stream (work.go), one writer of streams (stream.go), one reader (source.go) and one place
// where errors become gRPC statuses (errors.go).
//
// Invariants: one goroutine sends on a stream; the schema and a batch of no rows leave before any work; something
// leaves at least every half second; the last message of a stream that ended well says so; no message is metadata
// alone; no upload is committed unless its client ended it; the work of a call ends with the call; what a panic or an
// unexpected error says stays in the log.
//
// It imports internal/engine for the types of its work, flight/api, flight/auth, flight/columns, flight/tensor and
// flight/wire; nothing of kernels, schedules or training. Begin reading with New, then get.go and stream.go.
package flight
