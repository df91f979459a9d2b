package runs

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/train"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
)

// The states of a run.
const (
	Created   = "created"   // no step taken
	Running   = "running"   // in the background
	Paused    = "paused"    // may go on
	Done      = "done"      // reached what StartRun asked for; may be started for more
	Cancelled = "cancelled" // ended by the user
	Failed    = "failed"    // ended by an error
)

// status is what a run's status.json holds: everything but the state of the training itself, which is the folder
// beside.
type status struct {
	State   string          `json:"state"`
	Created time.Time       `json:"created"`
	Target  float64         `json:"target_kimg,omitempty"`
	Error   string          `json:"error,omitempty"`
	Stopped *api.Stopped    `json:"stopped,omitempty"`
	Memory  *api.RunMemory  `json:"memory,omitempty"`
	Step    int64           `json:"step"`
	Kimg    float64         `json:"kimg"`
	Config  json.RawMessage `json:"config"` // with every default resolved
}

// Run is one training run. Whoever holds own steps it: the background goroutine for one step at a time, or a TrainStep
// request. Everything else about it is behind mu.
type Run struct {
	of     *Runs
	name   string
	folder string
	stage  string
	data   string // name of its data set

	own   chan struct{} // holds one token while nobody owns the training
	train *train.Run    // guarded by own; nil until first needed and after the end
	saved time.Time     // guarded by own: when the state was stored last
	dirty bool          // guarded by own: there are steps that are not stored

	mu       sync.Mutex
	status   status
	rows     [][]float64 // in the order of train.RowColumns
	read     bool        // rows holds what was stored, too
	stepping int         // TrainStep requests under way
	changed  chan struct{}
	stop     context.CancelCauseFunc // of the background goroutine; nil while there is none
	ended    chan struct{}           // closed when that goroutine has ended
}

func (s *Runs) newRun(name string, st status, cfg train.Config) *Run {
	r := &Run{
		of: s, name: name, folder: filepath.Join(s.cfg.Catalog.Folders().Runs, name), stage: cfg.Stage, data: cfg.Dataset,
		own: make(chan struct{}, 1), status: st, changed: make(chan struct{}),
	}
	r.own <- struct{}{}
	return r
}

// Name returns the run's name.
func (r *Run) Name() string { return r.name }

// Dataset returns the name of its data set.
func (r *Run) Dataset() string { return r.data }

func (r *Run) statusPath() string { return filepath.Join(r.folder, "status.json") }
func (r *Run) statePath() string  { return filepath.Join(r.folder, "state") }

// acquire makes the caller the owner of the training.
func (r *Run) acquire(ctx context.Context) error {
	select {
	case <-r.own:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *Run) disown() { r.own <- struct{}{} }

// update changes the run under its lock and wakes those who watch it.
func (r *Run) update(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f()
	close(r.changed)
	r.changed = make(chan struct{})
}

// add notes a finished step.
func (r *Run) add(row train.Row) {
	r.update(func() {
		r.rows = append(r.rows, row.Values())
		r.status.Step, r.status.Kimg = row.Step, row.Kimg
	})
}

// Info describes the run.
func (r *Run) Info() api.RunInfo {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.status
	info := api.RunInfo{
		Name: r.name, State: s.State, Stage: r.stage, Dataset: r.data, Step: s.Step, Kimg: s.Kimg,
		Target: s.Target, Error: s.Error, Stopped: s.Stopped, Memory: s.Memory, Created: s.Created,
	}
	if n := len(r.rows); n > 0 {
		info.Last = map[string]any{}
		for i, v := range r.rows[n-1] {
			if !math.IsNaN(v) && !math.IsInf(v, 0) { // JSON has neither
				info.Last[train.RowColumns[i]] = v
			}
		}
	}
	return info
}

// storeStatus writes status.json.
func (r *Run) storeStatus() error {
	r.mu.Lock()
	text, err := json.Marshal(r.status)
	r.mu.Unlock()
	if err != nil {
		return err
	}
	return atomicdir.WriteFile(r.statusPath(), text)
}

// store writes the whole state. The caller owns the training.
func (r *Run) store(ctx context.Context) error {
	if r.train != nil && r.dirty {
		state, err := r.train.State(ctx)
		if err != nil {
			return err
		}
		state.Schedule = r.learned(state.Schedule, r.train.Config(), state.Rows)
		if err := checkpoint.SaveRun(r.statePath(), state); err != nil {
			return err
		}
		r.dirty = false
	}
	r.saved = time.Now()
	return r.storeStatus()
}

// open makes the training ready to step, from its stored state. The caller owns it.
func (r *Run) open(ctx context.Context) error {
	if r.train != nil {
		return nil
	}
	state, err := checkpoint.LoadRun(r.statePath())
	if err != nil {
		return err
	}
	cfg, err := readConfig(state.Config)
	if err != nil {
		return err
	}
	var src train.Sources
	if src.Device, err = r.of.cfg.Device(); err != nil {
		return err
	}
	if src.Dataset, err = r.of.cfg.Catalog.Dataset(cfg.Dataset); err != nil {
		return err
	}
	if err := src.Dataset.Check(ctx); err != nil { // before a step holds the device
		return err
	}
	if r.train, err = train.Resume(state, src); err != nil {
		return err
	}
	r.update(func() { r.status.Memory = memoryOf(r.train) })
	r.remember(state)
	return ctx.Err()
}

// memoryOf says how a run's steps fit the device.
func memoryOf(t *train.Run) *api.RunMemory {
	m := t.Memory()
	return &api.RunMemory{
		Microbatch: m.Microbatch, NeededBytes: m.Needed, WholeBytes: m.Whole,
		AvailableBytes: m.Available,
	}
}

// remember takes over the rows of a stored state.
func (r *Run) remember(state *checkpoint.Run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.read {
		r.rows, r.read = wholeRows(state.Rows), true
	}
}

// wholeRows completes rows that an older program has stored with the columns that it did not have.
func wholeRows(stored [][]float64) [][]float64 {
	var rows [][]float64
	for _, values := range stored {
		if row, err := train.RowOf(values); err == nil { // one that is no row stops the run's resumption, not its reading
			rows = append(rows, row.Values())
		}
	}
	return rows
}

// History makes sure that the rows of earlier servers are known.
func (r *Run) History(ctx context.Context) error {
	r.mu.Lock()
	read := r.read
	r.mu.Unlock()
	if read {
		return nil
	}
	if err := r.acquire(ctx); err != nil {
		return err
	}
	defer r.disown()
	state, err := checkpoint.LoadRun(r.statePath())
	if err == nil {
		r.remember(state)
	}
	return err
}

// closeTraining frees the device memory. The caller owns the training.
func (r *Run) closeTraining() {
	if t := r.train; t != nil {
		r.train = nil
		t.Close()
	}
}

// readStatus reads status.json back. A run that was running when its server died goes on from its last stored state.
func readStatus(path string) (s status, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return s, err
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, err
	}
	if s.State == Running {
		s.State = Paused
	}
	return s, nil
}
