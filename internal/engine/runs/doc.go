// Package runs is the life of training runs: created, stepped by requests or in the background, paused, stored,
// resumed, watched, and read as a model.
//
// Invariants: whoever holds a run's own token steps it, for one step at a time; a state is stored at least once a
// minute while a run is at work, and whenever it rests; a run that was running when its server died goes on from its
// last state.
//
// It imports catalog, where its data, models and schedules come from, batch, whose slots it takes for its steps, and
// train. Begin reading with Run and Runs.
package runs
