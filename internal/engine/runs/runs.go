package runs

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/base/safely"
	"github.com/anisoflight/anisoflight/internal/engine/batch"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/processes"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
)

// Config configures the runs of a folder.
type Config struct {
	Catalog   *catalog.Catalog
	Queue     *batch.Queue                   // of the device's slots
	Batcher   *batch.Batcher                 // of evaluations
	Device    func() (*device.Device, error) // the device, opened when it is first needed
	Precision kernels.Precision              // of runs that name none
	Logger    *slog.Logger
	World     *processes.World // that trains the one run which is started; nil: this process alone
	Version   string           // of the program, which all processes have
	MaxBytes  int64            // that a reply may have
}

// Runs are the training runs of one folder. Its methods may be called concurrently.
type Runs struct {
	cfg    Config
	log    *slog.Logger
	resume func(context.Context, *checkpoint.Run) (training, error) // tests have one without a device
	steps  atomic.Int64                                             // taken
	// storeEvery is the shortest time between two stores of a run; tests have a shorter one.
	storeEvery time.Duration
	joined     atomic.Bool // the other processes have followed a run

	changes sync.Mutex // held while a run is created or deleted

	mu   sync.RWMutex // guards the map
	runs map[string]*Run

	ending  chan struct{} // closed when the server ends
	endOnce sync.Once
}

// Open lists the stored runs. Their training states are read when they are needed; a run that cannot be read is listed
// as broken.
func Open(cfg Config) *Runs {
	s := &Runs{cfg: cfg, log: cfg.Logger, storeEvery: storeEvery, runs: map[string]*Run{}, ending: make(chan struct{})}
	s.resume = s.resumed
	for _, name := range catalog.StoredNames(s.root(), "") {
		s.runs[name] = s.openStored(name)
	}
	return s
}

func (s *Runs) root() string { return s.cfg.Catalog.Folders().Runs }

// openStored returns a run as it is on the disk.
func (s *Runs) openStored(name string) *Run {
	r := s.newRun(name)
	if err := atomicdir.Sweep(r.folder); err != nil {
		s.log.Warn("leftovers of an earlier crash stay", "run", name, "error", err)
	}
	if err := r.read(); err != nil {
		s.log.Warn("a run is broken", "run", name, "error", err)
		r = s.newRun(name)
		r.status = status{State: Broken, Error: faultOf(err)}
	}
	r.startLoop()
	return r
}

// newRun returns a run at rest. It works from begin on.
func (s *Runs) newRun(name string) *Run {
	return &Run{
		runs: s, name: name, folder: filepath.Join(s.root(), name), commands: make(chan command),
		turn: make(chan struct{}, 1), ended: make(chan struct{}), keeper: keeper{ended: time.Now()},
	}
}

func (r *Run) startLoop() {
	r.turn <- struct{}{}
	r.publish()
	go r.commandLoop()
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

// Delete deletes a run and its folder.
func (s *Runs) Delete(ctx context.Context, req api.RunName) error {
	s.changes.Lock()
	defer s.changes.Unlock()
	r, err := s.Named(req.Run)
	if err != nil {
		return err
	}
	return r.replace(ctx, func() error {
		err := atomicdir.Remove(r.folder)
		if _, still := os.Lstat(r.folder); still == nil && err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.runs, r.name)
		return nil
	})
}

// replace calls f, which puts something or nothing in the place of a run that is not at work, and retires the run. An
// error of f leaves it as it was.
func (r *Run) replace(ctx context.Context, f func() error) error {
	return r.do(ctx, func() error {
		if r.work != nil || r.stepping > 0 && r.status.State != Cancelled {
			return r.notRunnable("at work").WithHint("CancelRun it first.")
		}
		r.awaitStore()
		if err := f(); err != nil {
			return err
		}
		r.status.State = Cancelled
		r.retire()
		return nil
	})
}

// retire is a run's last command.
func (r *Run) retire() {
	r.awaitStore()
	r.retired = true
	r.closeTraining()
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// PauseAndStoreAll pauses every run that is at work and stores what is not stored. From then on no run is started, and only the
// requests that step one already go on. Watchers are told that the server ends.
func (s *Runs) PauseAndStoreAll(ctx context.Context) error {
	s.endOnce.Do(func() { close(s.ending) })
	return s.each(func(r *Run) error { return errors.Join(r.halt(ctx, errPause), r.storeAndWait(ctx)) })
}

// Close is Rest, after which the device is freed.
func (s *Runs) Close(ctx context.Context) error {
	err := s.PauseAndStoreAll(ctx)
	return errors.Join(err, s.each(func(r *Run) error {
		return r.do(ctx, func() error { r.retire(); return nil })
	}))
}

// each calls f for every run that is not retired, all at a time.
func (s *Runs) each(f func(*Run) error) error {
	all := s.All()
	errs := make([]error, len(all))
	var group sync.WaitGroup
	for i, r := range all {
		group.Go(func() {
			if err := safely.Do(func() error { return f(r) }); !isClosed(r.ended) {
				errs[i] = err
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}
