package runs

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/batch"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/processes"
	"github.com/anisoflight/anisoflight/train"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
)

// Run is one training run. Whoever holds own steps it: the background goroutine for one step at a time, or a TrainStep
// request. Everything else about it is behind mu.
type Run struct {
	of     *Runs
	name   string
	folder string
	stage  string
	data   string          // name of its data set
	config json.RawMessage // with every default resolved

	own        chan struct{} // holds one token while nobody owns the training
	train      *train.Run    // guarded by own; nil until first needed and after the end
	statusFile sync.Mutex    // held by whoever writes status.json

	mu       sync.Mutex
	keeper   keeper
	status   status
	files    api.Integrity
	note     string  // what whoever uses the run next is told
	end      *status // what the status becomes once the state is stored; nil: it is what it is
	step     int64
	kimg     float64
	rows     [][]float64 // in the order of train.RowColumns
	read     bool        // rows holds what was stored, too
	stepping int         // TrainStep requests under way
	changed  chan struct{}
	stop     context.CancelCauseFunc // of the background goroutine; nil while there is none
	ended    chan struct{}           // closed when that goroutine has ended
}

// Name returns the run's name.
func (r *Run) Name() string { return r.name }

// Dataset returns the name of its data set.
func (r *Run) Dataset() string { return r.data }

// take waits for the token of a channel.
func take(ctx context.Context, tokens chan struct{}) error {
	select {
	case <-tokens:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// give returns a token.
func give(tokens chan struct{}) { tokens <- struct{}{} }

// acquire makes the caller the owner of the training.
func (r *Run) acquire(ctx context.Context) error { return take(ctx, r.own) }

func (r *Run) disown() { give(r.own) }

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
		r.step, r.kimg = row.Step, row.Kimg
		if r.status.Noisy != "" {
			return
		}
		if r.status.Noisy = noisy(r.rows); r.status.Noisy != "" {
			r.note = strings.TrimSpace(r.note + " " + r.status.Noisy)
		}
	})
}

// state returns the run's state without the TrainStep requests under way.
func (r *Run) state() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status.State
}

// Info describes the run. A run that TrainStep requests step is running, so that one that is created or paused can be
// started.
func (r *Run) Info() api.RunInfo {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.status
	if r.stepping > 0 && (s.State == Created || s.State == Paused) {
		s.State = Running
	}
	info := api.RunInfo{
		Name: r.name, State: s.State, Stage: r.stage, Dataset: r.data, Step: r.step, Kimg: r.kimg,
		StoredStep: r.keeper.step, StoreError: r.keeper.storeError(),
		Restored: s.Restored, Notes: slices.Clone(s.Notes), Integrity: r.files,
		Target: s.Target, Error: s.Error, Stopped: s.Stopped, Memory: s.Memory, Created: s.Created,
		Parameters: s.Parameters, StepSeconds: stepSeconds(r.rows),
	}
	if s.Noisy != "" {
		info.Notes = append(info.Notes, s.Noisy)
	}
	if s.State == Broken {
		info.Integrity = api.Integrity{State: api.IsDamaged, Damage: s.Error}
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

// stepSamples is the number of steps whose median is the time of a step.
const stepSamples = 15

// stepSeconds returns the median time of the last steps, without a run's first one, which waits for the compiler; 0
// where there are none.
func stepSeconds(rows [][]float64) float64 {
	if len(rows) < 2 {
		return 0
	}
	at := slices.Index(train.RowColumns, "seconds")
	var all []float64
	for _, row := range rows[max(1, len(rows)-stepSamples):] {
		if !math.IsNaN(row[at]) {
			all = append(all, row[at])
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// Note returns what whoever uses the run next is to be told, once, else "".
func (r *Run) Note() (note string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	note, r.note = r.note, ""
	return note
}

// Describe is Info with the configuration.
func (r *Run) Describe() api.RunInfo {
	info := r.Info()
	info.Config = r.config
	return info
}

// Config configures the runs of a folder.
type Config struct {
	Catalog   *catalog.Catalog
	Queue     *batch.Queue                   // of the device's slots
	Device    func() (*device.Device, error) // the device, opened where it is first needed
	Precision kernels.Precision              // of runs that name none
	Logger    *slog.Logger
	World     *processes.World // that trains the one run which is started; nil: this process alone
	Version   string           // of the program, which all processes have
}

// Runs are the training runs of one folder. Its methods may be called concurrently.
type Runs struct {
	cfg   Config
	log   *slog.Logger
	steps atomic.Int64 // taken

	changes sync.Mutex // held by whoever creates or deletes a run

	mu   sync.RWMutex // guards the map
	runs map[string]*Run

	ending  chan struct{} // closed when the server ends
	endOnce sync.Once

	joined bool // the other processes have followed a run
}

// stepped reports whether there are steps that are not stored.
func (r *Run) stepped() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ahead()
}

// storeStatus writes status.json, where it is not what is written there already.
func (r *Run) storeStatus() error {
	r.statusFile.Lock()
	defer r.statusFile.Unlock()
	r.mu.Lock()
	text, err := r.status.encode()
	same := bytes.Equal(text, r.keeper.status) || r.keeper.gone
	r.mu.Unlock()
	if err != nil || same {
		return err
	}
	if err := atomicdir.WriteFile(StatusPath(r.folder), text); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keeper.status = text
	return nil
}
