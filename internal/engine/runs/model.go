package runs

import (
	"context"
	"encoding/json"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/train"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// Stale returns a sentence where the run's averaged network still holds much of what it started from, else "".
func (r *Run) Stale() string {
	var cfg train.Config
	if err := json.Unmarshal(r.config, &cfg); err != nil {
		return ""
	}
	return cfg.Stale(r.Info().Kimg)
}

// Model returns what the run has learned so far. A run that has ended is read from its stored state; one that could not
// be stored is still in memory.
func (r *Run) Model(ctx context.Context) (*checkpoint.Model, error) {
	if err := r.whole(); err != nil {
		return nil, err
	}
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
	state, err := r.load()
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
