// Package catalog stores models, data sets, schedules and bases by name, in a data folder.
//
// Lists and descriptions read files and need no device. A model's weights are loaded when it is first held. When memory
// is short, the weights that no request holds are unloaded, the least recently used first.
//
// Invariants: only the holder of the lock (package folderlock) uses a data folder; a name means one thing, and a
// model's name also its own schedule; what is stored appears whole or not at all; everything handed out is immutable,
// and a held model does not change if its name is reused.
//
// Begin reading with Catalog, then Model.
package catalog
