// Package schedules makes schedules, of models, data sets, solvers and formulas, benches them on a data set's own
// Gaussian, tabulates them, and reads and writes their files.
//
// Begin reading with Maker.
package schedules
