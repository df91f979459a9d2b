// Package catalog holds what is stored in a data folder: models, schedules, bases and data sets by name.
//
// What is listed and described is read from the files without touching the device. A model's weights are loaded when it
// is first held, and leave, the least recently used first, when memory is short and nobody holds them.
//
// Invariants: one process at a time works on a data folder, whoever holds its lock (package folderlock); a name means
// one thing, and a model's name its own schedule; what is stored appears whole or not at all; everything handed out is
// immutable, and a held model stays what it was, whatever becomes of its name.
//
// Begin reading with Catalog, then Model.
package catalog
