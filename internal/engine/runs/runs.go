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
	Batcher   *batch.Batcher                 // of the device
	Device    func() (*device.Device, error) // the device, opened when it is first needed
	Precision kernels.Precision              // of runs that name none
	Logger    *slog.Logger
	World     *processes.World // trains one run together; nil: this process trains alone
	Version   string           // of the program; all processes have the same
	MaxBytes  int64            // limit of a reply
}

// Runs are the training runs of one folder. Its methods may be called concurrently.
type Runs struct {
	cfg    Config
	log    *slog.Logger
	resume func(context.Context, *checkpoint.Run) (training, error) // tests have one without a device
	steps  atomic.Int64                                             // taken by all runs
	// storeEvery is the shortest time between two stores of a run; tests have a shorter one.
	storeEvery time.Duration
	worldUsed  atomic.Bool // the other processes have joined a run

	changes sync.Mutex // held while a run is created or deleted

	mu   sync.RWMutex // guards the map
	runs map[string]*Run

	ending context.Context // ends when the server ends
	end    context.CancelFunc
}

// Open lists the stored runs. Their states are read when they are needed. A run that cannot be read is broken.
func Open(cfg Config) *Runs {
	s := &Runs{cfg: cfg, log: cfg.Logger, storeEvery: storeEvery, runs: map[string]*Run{}}
	s.ending, s.end = context.WithCancel(context.Background())
	s.resume = s.resumed
	for _, name := range catalog.StoredNames(s.root(), "") {
		s.runs[name] = s.openStored(name)
	}
	return s
}

func (s *Runs) root() string { return s.cfg.Catalog.Folders().Runs }

// openStored opens a run of the disk.
func (s *Runs) openStored(name string) *Run {
	r := s.newRun(name)
	if err := atomicdir.Sweep(r.folder); err != nil {
		s.log.Warn("leftovers of an earlier crash stay", "run", name, "error", err)
	}
	if err := r.read(); err != nil {
		s.log.Warn("a run is broken", "run", name, "error", err)
		r = s.newRun(name)
		r.status = status{State: Broken, Error: catalog.FaultOf(err)}
	}
	r.startLoop()
	return r
}

// newRun returns a run without a goroutine, which startLoop starts.
func (s *Runs) newRun(name string) *Run {
	r := &Run{
		runs: s, name: name, folder: filepath.Join(s.root(), name), commands: make(chan command),
		stepToken: batch.NewQueue(1), keeper: keeper{endedAt: time.Now()},
	}
	r.ended, r.end = context.WithCancel(context.Background())
	return r
}

func (r *Run) startLoop() {
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

// replace calls f, which replaces or deletes the folder of a run that is not at work, and retires the run. If f fails,
// the run stays as it was.
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

// PauseAndStoreAll pauses every run that trains in the background, and stores all runs. From then on no run is started;
// open TrainStep requests go on. Watchers of runs that do not train are told that the server ends.
func (s *Runs) PauseAndStoreAll(ctx context.Context) error {
	s.end()
	return s.each(func(r *Run) error { return errors.Join(r.halt(ctx, errPause), r.storeAndWait(ctx)) })
}

// Close is PauseAndStoreAll, and then frees the device memory of all runs.
func (s *Runs) Close(ctx context.Context) error {
	err := s.PauseAndStoreAll(ctx)
	return errors.Join(err, s.each(func(r *Run) error {
		return r.do(ctx, func() error { r.retire(); return nil })
	}))
}

// each calls f for all runs at the same time. It returns no errors of runs that have ended.
func (s *Runs) each(f func(*Run) error) error {
	all := s.All()
	errs := make([]error, len(all))
	var group sync.WaitGroup
	for i, r := range all {
		group.Go(func() {
			if err := safely.Do(func() error { return f(r) }); r.ended.Err() == nil {
				errs[i] = err
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}
