// Package columns converts the schemas and batches of the contract, which are Go slices, to Arrow's and back, without
// copying numbers. The server and the Go client use it.
//
// Begin reading with Record and Batch.
package columns
