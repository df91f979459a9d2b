// Package evaluating evaluates a network at rows that a client sends (Denoise, ScheduleGradient), and measures it on a
// data set (EvaluateModel, Predict).
//
// Begin with Evaluator.
package evaluating

import (
	"github.com/anisoflight/anisoflight/internal/engine/batch"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
)

// Evaluator evaluates the models of a catalogue.
type Evaluator struct {
	Catalog  *catalog.Catalog
	Batcher  *batch.Batcher
	MaxBytes int64 // limit of a reply
}
