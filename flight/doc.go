// Package flight is the service: it serves an engine over Arrow Flight by the contract of package api.
//
// It knows requests and streams, but not what their columns mean. Every call passes admit, which identifies the caller,
// and run, which counts the call and turns its error into a status (admit.go, call.go). All calls share the conversion
// of api's schemas and batches to Arrow's (flight/columns), the code that works next to a stream and writes it
// (stream.go), and the reader of a client's stream (put.go).
//
// Memory is bounded by gRPC's limit for one message and by a budget, in bytes, for all received messages in use.
// guardedStream reserves a message's bytes; they are released after its batch, or when its call ends.
//
// Invariants: One goroutine sends on a stream. The schema and an empty batch are sent before work starts. A message is
// sent at least every 500 ms. The last message of a successful stream has the event "end". Every message has a batch.
// An upload is committed only if its client ended the stream. The work of a call ends with the call. The text of a
// panic or of an unexpected error is only logged.
//
// Begin reading with New, then call.go and actions.go.
package flight
