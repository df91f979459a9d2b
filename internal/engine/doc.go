// Package engine is the server without its transport: the operations of the contract on one data folder.
//
//	operations.go  the table of handlers, and the entry points, which map errors and count requests
//	catalog        models, schedules, bases and data sets on disk
//	contents       these made, received and sent
//	runs           the life of training runs
//	batch          the fair queue for the device, dynamic batching
//	sampling       requests for samples: plans, starts, guides, rows
//	schedules      schedules made, compared and tabulated; their files
//	offered        searches and schedules for networks that clients evaluate
//	evaluating     a network at rows that clients send, and on data sets
//	tables         checks of the tables of requests; schemas and batches of replies
//	explain        errors of lower layers as codes of the contract
//
// An operation is prepared before it runs: Prepare checks the request and prices the reply, so that a bad request is
// refused before any work. The job runs once and sends its rows to the caller's emit. Exchange does the same for
// operations that take tensors, Put for uploads, and Action for operations that speak JSON.
//
// Invariants: everything handed out is immutable or a copy; a request uses the model and schedule that it found at its
// beginning; the first operation that needs the device opens it; a cancelled context ends the work within one network
// evaluation; every error is an *api.Error or becomes one in api.ErrorOf.
//
// Begin reading with Engine, then operations.go and sampling.
package engine
