package runs

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/train"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
)

// Open lists the stored runs. Their training states are read when they are needed; a run that cannot be read is listed
// as broken.
func Open(cfg Config) *Runs {
	s := &Runs{cfg: cfg, log: cfg.Logger, runs: map[string]*Run{}, ending: make(chan struct{})}
	for _, name := range catalog.StoredNames(s.root(), "") {
		s.runs[name] = s.stored(name)
	}
	return s
}

// root is the folder of the runs' folders.
func (s *Runs) root() string { return s.cfg.Catalog.Folders().Runs }

// stored returns a run as it is on the disk.
func (s *Runs) stored(name string) *Run {
	folder := filepath.Join(s.root(), name)
	if err := atomicdir.Sweep(folder); err != nil {
		s.log.Warn("leftovers of an earlier crash stay", "run", name, "error", err)
	}
	st, state, cfg, fell, err := s.describe(name, folder)
	if err != nil {
		s.log.Warn("a run is broken", "run", name, "error", err)
		r := s.newRun(name, status{State: Broken, Error: faultOf(err)}, train.Config{}, nil)
		r.keeper.gone = true // what there is stays as it is
		return r
	}
	r := s.newRun(name, st, cfg, state.Config)
	r.step, r.kimg, r.keeper.step = state.Step, float64(state.Seen)/1000, state.Step
	r.keeper.status, _ = st.encode()
	r.files = api.Integrity{State: api.Unchecked}
	if fell {
		r.note = st.Restored
	}
	return r
}

// newRun returns a run that is at rest.
func (s *Runs) newRun(name string, st status, cfg train.Config, config json.RawMessage) *Run {
	r := &Run{
		of: s, name: name, folder: filepath.Join(s.root(), name), stage: cfg.Stage, data: cfg.Dataset, config: config,
		own: make(chan struct{}, 1), status: st, changed: make(chan struct{}),
		keeper: keeper{turn: make(chan struct{}, 1), ended: time.Now()},
	}
	give(r.own)
	give(r.keeper.turn)
	return r
}

// Steps returns how many training steps have been taken.
func (s *Runs) Steps() int64 { return s.steps.Load() }

// Named finds a run.
func (s *Runs) Named(name string) (*Run, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	r, ok := s.runs[name]
	if !ok {
		return nil, api.NotFound(api.RunNotFound, "run", name, slices.Sorted(maps.Keys(s.runs)))
	}
	return r, nil
}

// All lists the runs in the order of their names.
func (s *Runs) All() []*Run {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var all []*Run
	for _, name := range slices.Sorted(maps.Keys(s.runs)) {
		all = append(all, s.runs[name])
	}
	return all
}

// errResting is the answer to who wants to train while the server ends.
func errResting() error { return api.Errorf(api.Draining, "The server is shutting down") }

// resting reports whether the server ends.
func (s *Runs) resting() bool {
	select {
	case <-s.ending:
		return true
	default:
		return false
	}
}
