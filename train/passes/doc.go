// Package passes measures networks, schedules and data in passes over a data set that
// need no run:
//
//	MakeGeodesic   the schedule of least energy, from the energy density F(σ)
//	AskGeodesic    the same of a network that somebody else evaluates (asker.go)
//	Evaluate       the loss of a network along a schedule, by noise level
//	Energies       energies of one schedule on a fixed evaluation set, as runs watch it
//	Predict        what bases and schedules per class can save before any is trained
//	PCA            a basis of principal components
//
// What a pass returns is a function of its settings, its seed among them, and of the
// network and the data. Sample number k has the same image and noise whatever it is
// measured at, so that two passes of one seed are paired.
//
// The package may import kernels, schedule, train/data, train/setting and
// the standard library; package train imports it, never the other way round. Begin with
// evaluate.go, then meter.go.
package passes
