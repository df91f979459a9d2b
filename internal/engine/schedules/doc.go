// Package schedules makes schedules, of models, data sets, solvers and formulas, benches them on a data set's own
// Gaussian, tabulates them, and reads and writes their files.
//
// It imports catalog, where what it needs is found and what it makes is stored, batch, whose slots it takes for
// evaluations of networks, train/passes and schedule. Begin reading with Maker.
package schedules
