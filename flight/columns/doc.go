// Package columns turns the schemas and batches of the contract, which are Go slices, into Arrow's and back, without
// copying their numbers. The server and the Go client share it.
//
// Begin reading with Record and Batch.
package columns
