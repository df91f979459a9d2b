package engine

import (
	"context"
	"path/filepath"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/train"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// saveModel writes the averaged network of a run, with its schedule, as models/NAME and serves it. A run at work goes on
// after the step it is in.
func (e *Engine) saveModel(ctx context.Context, req api.SaveModel) (any, error) {
	r, err := e.runNamed(req.Run)
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(e.folders.models, req.Name)
	if err := e.mayReplace(req.Name, req.Replace, folder); err != nil { // before the work; asked again below
		return nil, err
	}
	learned, err := r.model(ctx)
	if err != nil {
		return nil, err
	}
	learned.Schedule = madeFor(learned.Schedule, req.Name)
	return e.serveModel(req.Name, req.Replace, folder, learned)
}

// mayReplace tells whether a model may be saved under a name.
func (e *Engine) mayReplace(name string, replace bool, folder string) error {
	if err := e.freeModel(name, name); err != nil {
		return err
	}
	if !replace && (e.isLoaded(name, name) || exists(folder)) {
		return nameTaken("model", name)
	}
	return nil
}

// model gives what the run has learned so far. A run that has ended is read from its stored state.
func (r *run) model(ctx context.Context) (*checkpoint.Model, error) {
	if err := r.acquire(ctx); err != nil {
		return nil, err
	}
	defer r.disown()
	if r.train != nil {
		m, err := r.train.Model(ctx)
		if err != nil {
			return nil, err
		}
		r.mu.Lock()
		rows := r.rows
		r.mu.Unlock()
		m.Schedule = r.learned(m.Schedule, r.train.Config(), rows)
		return m, nil
	}
	state, err := checkpoint.LoadRun(r.statePath())
	if err != nil {
		return nil, err
	}
	if state.Network == nil {
		return nil, api.Errorf(api.BadRequest, "The run %q has no network of its own to save", r.name)
	}
	values := state.EMA
	if values == nil { // frozen: the network is as it was
		values = state.Params
	}
	learned, err := train.Published(state)
	if err != nil {
		return nil, err
	}
	return &checkpoint.Model{Net: state.Network, Values: values, Schedule: learned, Basis: state.Basis}, nil
}
