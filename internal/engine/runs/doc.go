// Package runs is the life of training runs: created, stepped by requests or in the background, paused, stored,
// resumed, watched, and read as a model.
//
// Each run is a state machine with one owner, a goroutine: all others send it commands and read immutable snapshots
// (run.go). Training in the background and TrainStep requests are such others: they wait for a slot of the device and
// then have the owner take one step (work.go). The owner copies the state between two steps, and it is written beside
// training (store.go).
//
// Invariants: what has been stepped is stored within a second or twenty times what a store takes, whichever is longer,
// whoever stepped it, and whenever the run rests; a state leaves memory only once it is on the disk; a run that was
// running when its server died goes on from its last state.
//
// A run is a folder, made and replaced as a whole:
//
//	NAME/status.json   what was asked of it and what came of it, with its hash; written again when that changes
//	NAME/state/        its last stored state (package checkpoint)
//	NAME/previous/     the one before
//
// A last state that is damaged gives way to the one before, and the run says so ever after; see stored.go.
//
// Whatever lies under a name takes it: what cannot be read is listed as broken and can be deleted, nothing else.
//
// Begin reading with Run and Runs.
package runs
