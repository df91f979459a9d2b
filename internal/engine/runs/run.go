package runs

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/base/safely"
	"github.com/anisoflight/anisoflight/internal/engine/batch"
	"github.com/anisoflight/anisoflight/kernels/processes"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/frechet"
	"github.com/anisoflight/anisoflight/train"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// Run is a training run. One goroutine, its owner, has all that changes of it. It executes commands one after the other
// and publishes a snapshot after each. All other goroutines send commands and read snapshots.
type Run struct {
	runs   *Runs
	name   string
	folder string
	cfg    train.Config
	config json.RawMessage // with every default resolved

	commands  chan command
	snapshot  atomic.Pointer[snapshot]
	stepToken *batch.Queue    // of one slot, held for a step, so that a run uses one slot of the device at most
	ended     context.Context // ends when the owner ends
	end       context.CancelFunc

	measuring  sync.Mutex
	references []*frechet.Reference // of the run's images, once a look needs them

	// The owner's alone.
	training training // nil until it is first needed and after the end
	status   status
	next     *status // what the status becomes once the state is stored; nil: it stays what it is
	files    api.Integrity
	step     int64
	kimg     float64
	rows     []train.Row // shared with training; never written to again
	rowsRead bool        // rows begins with the run's first step
	stepping int         // TrainStep requests under way
	work     *work       // in the background; nil while there is none
	looks    int         // measurements of the state that training has taken
	keeper   keeper
	retired  bool // deleted, replaced or closed: the owner ends
}

// training is what a run steps: a [*train.Run], or a fake in tests.
type training interface {
	Step(context.Context) (train.Row, error)
	StepOn(ctx context.Context, images []float32, labels []int32) (train.Row, error)
	Rows(from int) []train.Row
	State(context.Context) (*checkpoint.Run, error)
	Model(context.Context) (*checkpoint.Model, error)
	Config() train.Config
	Memory() train.Memory
	ParamCount() int
	Damage() error
	Outcome() *train.Outcome
	Candidate(ctx context.Context, end bool) (*train.Candidate, error)
	Keep(c *train.Candidate, energy, samples, onStart []float64) error
	Moved() *schedule.Movement
	Facts() []processes.Fact
	Close()
}

// command is what the owner is asked to do; its error is sent to done.
type command struct {
	do   func() error
	done chan<- error
}

// snapshot is a run between two commands. It is immutable.
type snapshot struct {
	info     api.RunInfo // without the configuration
	resting  string      // its state without the requests that step it
	rows     []train.Row
	rowsRead bool
	work     *work
	replaced chan struct{} // closed when another snapshot takes its place
}

// commandLoop is the owner. It ends when the run is retired.
func (r *Run) commandLoop() {
	defer r.end()
	for !r.retired {
		select {
		case c := <-r.commands:
			err := safely.Do(c.do)
			r.publish()
			c.done <- err
		case result := <-r.keeper.writing:
			r.noteStore(result)
			r.publish()
		case <-r.due():
			r.storeBeside()
		}
	}
}

// do has the owner call f between two other commands, and returns its error. The end of ctx ends the wait for the
// owner, not f.
func (r *Run) do(ctx context.Context, f func() error) error {
	done := make(chan error, 1)
	select {
	case r.commands <- command{f, done}:
		return <-done
	case <-r.ended.Done():
		return r.notRunnable("deleted")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// publish replaces the snapshot and wakes the goroutines that wait for a new one.
func (r *Run) publish() {
	last := r.snapshot.Swap(&snapshot{
		info: r.describe(), resting: r.status.State, rows: r.rows, rowsRead: r.rowsRead, work: r.work,
		replaced: make(chan struct{}),
	})
	if last != nil {
		close(last.replaced)
	}
}

// describe describes the run. While TrainStep requests step it, its state is running, though it is stored as created or
// paused.
func (r *Run) describe() api.RunInfo {
	info := api.RunInfo{
		Name: r.name, State: r.status.State, Stage: r.cfg.Stage, Dataset: r.cfg.Dataset, Step: r.step, Kimg: r.kimg,
		StoredStep: r.keeper.step, StoreError: r.keeper.storeError(),
		Restored: r.status.Restored, Notes: r.status.Notes, Integrity: r.files,
		Target: r.status.Target, Error: r.status.Error, Stopped: r.status.Stopped, Memory: r.status.Memory,
		Created: r.status.Created, Parameters: r.status.Parameters, Seconds: r.status.Seconds,
		StepSeconds: stepSeconds(r.rows), Outcome: r.status.Outcome,
	}
	if r.stepping > 0 && (info.State == Created || info.State == Paused) {
		info.State = Running
	}
	if info.State == Broken {
		info.Integrity = api.Integrity{State: api.IsDamaged, Damage: r.status.Error}
	}
	if n := len(r.rows); n > 0 {
		info.Last = finiteValues(r.rows[n-1])
	}
	return info
}

// Name returns the run's name.
func (r *Run) Name() string { return r.name }

func (r *Run) notRunnable(what string) *api.Error {
	return api.Errorf(api.RunNotRunnable, "The run %q is %s", r.name, what)
}

// readable refuses a broken run.
func (r *Run) readable() error {
	s := r.snapshot.Load()
	if s.resting != Broken {
		return nil
	}
	return api.Errorf(api.Damaged, "The run %q is broken: %s", r.name, s.info.Error).
		WithHint("End the server and put the state before in its place by anisoflight fsck --repair, or delete the run.")
}

// Info describes the run.
func (r *Run) Info() api.RunInfo { return r.snapshot.Load().info }

// finiteValues returns the columns of a row without NaN and infinities, which JSON does not have.
func finiteValues(row train.Row) map[string]any {
	out := map[string]any{}
	for i, v := range row.Values() {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			out[train.RowColumns[i]] = v
		}
	}
	return out
}

func (r *Run) infoWithConfig() api.RunInfo {
	info := r.Info()
	info.Config = r.config
	return info
}

// stepSeconds returns the median time of the last steps, or 0 if there are none. It leaves out a run's first step,
// which compiles.
func stepSeconds(rows []train.Row) float64 {
	const steps = 15
	var all []float64
	for i := max(1, len(rows)-steps); i < len(rows); i++ {
		if seconds := rows[i].Seconds; !math.IsNaN(seconds) {
			all = append(all, seconds)
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// watch sends the rows from the given one on as they come, until the run is done, cancelled, failed or paused. It waits
// for a run that was only created, until the server ends. With noWait it ends after the present rows.
func (r *Run) watch(ctx context.Context, from int, noWait bool, emit func(api.Event) error) error {
	const most = 10_000 // rows of 80 bytes in one batch
	for {
		s := r.snapshot.Load()
		rows := s.rows[min(from, len(s.rows)):]
		rows = rows[:min(most, len(rows))]
		if from += len(rows); len(rows) > 0 {
			if err := emit(api.Event{Batch: api.RowsBatch(rows), Meta: api.Done(int64(from), -1)}); err != nil {
				return err
			}
		}
		state := s.info.State
		var ending <-chan struct{} // of the server, if there is no step to come
		if state == Created {
			ending = r.runs.ending.Done()
		}
		switch {
		case from < len(s.rows):
		case noWait, state != Created && state != Running:
			return nil
		default:
			select {
			case <-s.replaced:
			case <-ending:
				return errEnding()
			case <-ctx.Done():
				return ctx.Err()
			}
		}
	}
}
