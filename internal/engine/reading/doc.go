// Package reading sends what is stored back to clients: models, bases and data sets.
//
// Begin with Reader.
package reading

import "github.com/anisoflight/anisoflight/internal/engine/catalog"

// Reader reads what a catalogue stores.
type Reader struct {
	Catalog  *catalog.Catalog
	MaxBytes int64 // that a reply may have
}
