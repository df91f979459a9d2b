// Package runs is the life of training runs: they are created, stepped by requests or in the background, paused,
// stored, resumed, watched, and read as models.
//
// Each run is a state machine that one goroutine owns. Other goroutines send it commands and read immutable snapshots
// (run.go). Background training and TrainStep are such clients: they wait for a slot of the device, and then have the
// owner take one step (work.go). Between two steps the owner copies the state, which is written while training goes on
// (store.go).
//
// Invariants: steps are stored within one second, or within 20 times the duration of a store if that is longer, and
// always when a run stops; a state leaves memory only after it is stored; a run that was running when its server died
// resumes from its last stored state.
//
// A run is a folder:
//
//	NAME/status.json   what was asked of it and what came of it, with its hash; written again when that changes
//	NAME/state/        its last stored state (package checkpoint)
//	NAME/previous/     the state before
//
// If the last state is damaged, the run resumes from the previous one, and its description says so (stored.go). Any
// folder occupies its name. A run that cannot be read is listed as broken; it can only be deleted or replaced.
//
// Begin reading with Run and Runs.
package runs
