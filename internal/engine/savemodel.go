package engine

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/kernels/unet"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// saveModel writes the averaged network of a run, with its schedule, as models/NAME and serves it. A run at work goes on
// after the step it is in.
func (e *Engine) saveModel(ctx context.Context, req api.SaveModel, _ func(api.Meta)) (any, error) {
	r, err := e.runNamed(req.Run)
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(e.folders.models, req.Name)
	if err := e.mayReplace(req, folder); err != nil { // before the work; asked again below
		return nil, err
	}
	learned, err := r.model(ctx)
	if err != nil {
		return nil, err
	}
	learned.Schedule = madeFor(learned.Schedule, req.Name)
	e.changes.Lock()
	defer e.changes.Unlock()
	if err := e.mayReplace(req, folder); err != nil {
		return nil, err
	}
	if err := checkpoint.SaveModel(folder, learned, req.Replace); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil, nameTaken("model folder", req.Name)
		}
		return nil, err
	}
	m, err := e.readModel(req.Name, folder, req.Name)
	if err != nil {
		return nil, err
	}
	e.installModel(m)
	return m.describe(), nil
}

// mayReplace tells whether a model may be saved under a name.
func (e *Engine) mayReplace(req api.SaveModel, folder string) error {
	if err := e.freeModel(req.Name, req.Name); err != nil {
		return err
	}
	if !req.Replace && (e.isLoaded(req.Name, req.Name) || exists(folder)) {
		return nameTaken("model", req.Name)
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
	net, err := unet.New(*state.Network)
	if err != nil {
		return nil, err
	}
	values := state.EMA
	if values == nil { // frozen: the network is as it was
		values = state.Params
	}
	return &checkpoint.Model{Net: net, Values: values, Schedule: state.Schedule, Basis: state.Basis}, nil
}
