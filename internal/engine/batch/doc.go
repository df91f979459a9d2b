// Package batch shares the device among requests and runs: a fair queue of slots, and a dynamic batcher that evaluates
// requests for one network together. It is the sampler.Device of the server.
//
// Invariants: every user of the device holds a slot, and queues again for each evaluation; the values of a row do not
// depend on other rows of its batch; a request that makes a batch fail gets the error alone.
//
// Begin reading with Queue, then Batcher.
package batch
