// Package batch shares the device among requests and runs: a fair queue of slots, and a dynamic batcher that evaluates
// what waits for one network together. It is the sampler.Device of the server.
//
// Invariants: everybody who uses the device holds a slot, and queues again for each evaluation; a row's values do not
// depend on the rows beside it; what a batch fails with is the error of those alone who caused it.
//
// Begin reading with Queue, then Batcher.
package batch
