// Package making makes models, bases and data sets, and stores them.
//
// Begin with Maker.
package making

import "github.com/anisoflight/anisoflight/internal/engine/catalog"

// Maker makes what a catalogue stores.
type Maker struct {
	Catalog  *catalog.Catalog
	MaxBytes int64 // that a data set may have
}
