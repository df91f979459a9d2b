package engine

import (
	"context"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/runs"
)

// saveModel writes the averaged network of a run, with its schedule, as models/NAME and serves it. A run at work goes on
// after the step it is in.
func (e *Engine) saveModel(ctx context.Context, req api.SaveModel) (any, error) {
	r, err := e.runs.Named(req.Run)
	if err != nil {
		return nil, err
	}
	if err := e.catalog.FreeModel(req.Name, req.Replace); err != nil { // before the work; SaveModel asks again
		return nil, err
	}
	learned, err := r.Model(ctx)
	if err != nil {
		return nil, err
	}
	learned.Schedule = runs.MadeFor(learned.Schedule, req.Name)
	return described(e.catalog.SaveModel(req.Name, req.Replace, learned))
}
