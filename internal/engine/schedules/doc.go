// Package schedules makes schedules of models, data sets, solvers and formulas, compares them on the Gaussian of a data
// set, tabulates them, and reads and writes their files.
//
// Begin reading with Maker.
package schedules
