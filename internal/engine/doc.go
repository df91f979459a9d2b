// Package engine is the server without its transport: the catalogue of models, schedules, bases, data sets and runs under
// one folder, and the operations on them.
//
// An operation is prepared before it runs: Prepare decodes and checks the request, finds what it names, and prices the
// reply, so that what cannot be served is refused before any work. The Job it gives is run once and sends its rows
// through the caller's emit. Exchange does the same for operations that take tensors in, Put for uploads, and Action for
// those that speak JSON.
//
// Invariants: everything handed out is immutable or a copy; a request keeps the snapshot of model and schedule that it
// started with; what is stored appears whole or not at all; a run's state is owned by the goroutine that steps it; a
// cancelled context ends the work within one network evaluation; every error is an *api.Error or becomes one in
// api.ErrorOf.
//
// The engine imports the floors below it (train, kernels, schedule), internal/process and flight/api; nothing of gRPC or Arrow. Begin
// reading with Engine, then Job and sample.go.
package engine
