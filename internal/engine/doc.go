// Package engine is the server without its transport: the operations of the contract on one data folder.
//
//	operations.go  who does which operation; the ways in, which map errors and count what is under way
//	catalog        what is stored: models, schedules, bases, data sets
//	runs           the life of training runs
//	batch          the fair queue for the device, dynamic batching
//	sampling       requests for samples: plans, where they start, their guides, rows
//	schedules      making, benching and tabulating schedules; their files
//	offered        networks that clients evaluate: searches and schedules for them
//	evaluating     a network at rows that clients send, and on data sets
//	making         models, bases and data sets
//	reading        what is stored, as rows
//	uploads        what clients send: models, conditions, data sets, bases, schedules
//	tables         checks of the tables that requests bring; metadata, price and batches of replies
//	explain        errors of the floors below as codes of the contract
//
// An operation is prepared before it runs: Prepare checks the request, finds what it names, and prices the reply, so
// that what cannot be served is refused before any work. The job is run once and sends its rows through the caller's
// emit. Exchange does the same for operations that take tensors in, Put for uploads, and Action for those that speak
// JSON.
//
// Invariants: everything handed out is immutable or a copy; a request keeps the snapshot of model and schedule that it
// started with; the device is opened by the first operation that needs it; a cancelled context ends the work within one
// network evaluation; every error is an *api.Error or becomes one in api.ErrorOf.
//
// Begin reading with Engine, then operations.go and sampling.
package engine
