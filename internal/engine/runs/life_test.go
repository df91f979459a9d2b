package runs

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/batch"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/explain"
	"github.com/anisoflight/anisoflight/internal/testing/apitest"
	"github.com/anisoflight/anisoflight/kernels/processes"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
)

// fake is a training without a device: each step sees 8 images.
type fake struct {
	rows []train.Row
	seed uint64
	step func(context.Context, *train.Row) error // called in every step; may be nil
}

func (f *fake) Step(ctx context.Context) (train.Row, error) {
	n := len(f.rows) + 1
	row := train.Row{Step: int64(n), Kimg: float64(n) * 0.008}
	var err error
	if f.step != nil {
		err = f.step(ctx, &row)
	}
	if row.Step > 0 {
		f.rows = append(f.rows, row)
	}
	return row, err
}

func (f *fake) StepOn(ctx context.Context, _ []float32, _ []int32) (train.Row, error) {
	return f.Step(ctx)
}
func (f *fake) Rows(from int) []train.Row { return f.rows[from:] }

func (f *fake) State(context.Context) (*checkpoint.Run, error) {
	config, err := json.Marshal(f.Config())
	s := &checkpoint.Run{
		RunHead: checkpoint.RunHead{Config: config, Step: int64(len(f.rows)), Seen: int64(8 * len(f.rows))},
	}
	for _, row := range f.rows {
		s.Rows = append(s.Rows, row.Values())
	}
	return s, err
}

func (f *fake) Model(context.Context) (*checkpoint.Model, error) {
	return &checkpoint.Model{Values: [][]float32{{float32(len(f.rows))}}}, nil
}

func (f *fake) Config() train.Config {
	cfg, err := train.Config{
		Stage: train.Pretrain, Dataset: "images", Batch: 8, Kimg: 1, Seed: f.seed, PStdSubspace: new(float64),
	}.Resolve()
	if err != nil {
		panic(err)
	}
	return cfg
}
func (f *fake) Memory() train.Memory      { return train.Memory{} }
func (f *fake) ParamCount() int           { return 1 }
func (f *fake) Damage() error             { return nil }
func (f *fake) Moved() *schedule.Movement { return nil }
func (f *fake) Outcome() *train.Outcome   { return nil }
func (f *fake) Candidate(context.Context, bool) (*train.Candidate, error) {
	return nil, nil
}
func (f *fake) Keep(_ *train.Candidate, _, _, _ []float64) error { return nil }
func (f *fake) Facts() []processes.Fact                          { return nil }
func (f *fake) Close()                                           {}

// open opens the runs of a data folder. Their training is fake, with the given steps.
func open(t *testing.T, dir string, step func(context.Context, *train.Row) error) *Runs {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	c, err := catalog.Open(t.Context(), catalog.Config{Dir: dir, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	s := Open(Config{Catalog: c, Batcher: batch.New(batch.NewQueue(1), false), Logger: quiet})
	s.storeEvery = 50 * time.Millisecond
	s.resume = func(_ context.Context, state *checkpoint.Run) (training, error) {
		var cfg train.Config
		err := json.Unmarshal(state.Config, &cfg)
		return &fake{train.StoredRows(state.Rows), cfg.Seed, step}, err
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

// create makes a run called r.
func create(t *testing.T, s *Runs, step func(context.Context, *train.Row) error) *Run {
	t.Helper()
	r, err := s.place(t.Context(), api.CreateRun{Name: "r"}, &fake{step: step}, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// made returns the runs of a new folder, with the run r.
func made(t *testing.T, step func(context.Context, *train.Row) error) (*Runs, *Run) {
	t.Helper()
	s := open(t, t.TempDir(), step)
	return s, create(t, s, step)
}

// killed returns the runs of what the folder holds now, as after kill -9.
func killed(t *testing.T, s *Runs) *Runs {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Dir(s.root()))); err != nil {
		t.Fatal(err)
	}
	return open(t, dir, nil)
}

func named(t *testing.T, s *Runs, name string) *Run {
	t.Helper()
	r, err := s.Named(name)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func start(t *testing.T, s *Runs, kimg float64) {
	t.Helper()
	if _, err := s.Start(t.Context(), api.StartRun{Run: "r", Kimg: kimg}); err != nil {
		t.Fatal(err)
	}
}

// trainStep is a TrainStep request of n steps.
func trainStep(ctx context.Context, r *Run, n int, emit func(api.Event) error) error {
	release, err := r.beginStepping()
	if err != nil {
		return err
	}
	for i := 0; i < n && err == nil; i++ {
		err = r.trainStep(ctx, nil, nil, emit, int64(i+1), int64(n))
	}
	return errors.Join(err, release())
}

func ignore(api.Event) error { return nil }

// watch returns the steps that WatchRun sends until it ends.
func watch(t *testing.T, r *Run, from int) (steps []int64) {
	t.Helper()
	err := r.watch(t.Context(), from, false, func(e api.Event) error {
		steps = append(steps, e.Batch.Cols[0].([]int64)...)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return steps
}

func waitFor(t *testing.T, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not come")
		}
	}
}

// wantCode checks the error that a client gets.
func wantCode(t *testing.T, what string, err error, want api.Code, says ...string) {
	t.Helper()
	apitest.WantCode(t, what, explain.Error(err), want, says...)
}

// slowly makes every step take a moment, so that a run of 1000 kimg does not end in a test.
func slowly(context.Context, *train.Row) error {
	time.Sleep(time.Millisecond)
	return nil
}

func TestLifeCycle(t *testing.T) {
	s, r := made(t, slowly)
	if info := r.Info(); info.State != Created || info.Step != 0 {
		t.Fatalf("a new run is %+v", info)
	}
	if err := trainStep(t.Context(), r, 2, ignore); err != nil {
		t.Fatal(err)
	}
	if info := r.Info(); info.State != Paused || info.Step != 2 || info.StoredStep != 2 || info.Kimg != 0.016 {
		t.Errorf("a stepped run is %+v", info)
	}
	start(t, s, 1000)
	waitFor(t, func() bool { return r.Info().Step > 4 })
	wantCode(t, "TrainStep of a running run", trainStep(t.Context(), r, 1, ignore), api.RunNotRunnable)
	_, err := s.Start(t.Context(), api.StartRun{Run: "r"})
	wantCode(t, "StartRun of a running run", err, api.RunNotRunnable)
	wantCode(t, "DeleteRun of a running run", s.Delete(t.Context(), api.RunName{Run: "r"}), api.RunNotRunnable)
	if _, _, err := r.Model(t.Context()); err != nil || r.Info().State != Running {
		t.Errorf("after its model is read the run is %s, %v", r.Info().State, err)
	}
	watched := make(chan []int64)
	go func() { watched <- watch(t, r, 1) }()
	if _, err := s.Pause(t.Context(), api.RunName{Run: "r"}); err != nil {
		t.Fatal(err)
	}
	steps, info := <-watched, r.Info() // watching ends when the run rests
	if info.State != Paused || info.StoredStep != info.Step || int64(len(steps)) != info.Step-1 {
		t.Errorf("watched %v of a run that is %+v", steps, info)
	}
	for i, step := range steps {
		if step != int64(i+2) {
			t.Fatalf("row %d is step %d", i, step)
		}
	}
	if _, err := s.Cancel(t.Context(), api.RunName{Run: "r"}); err != nil {
		t.Fatal(err)
	}
	_, err = s.Start(t.Context(), api.StartRun{Run: "r"})
	wantCode(t, "StartRun of a cancelled run", err, api.RunNotRunnable)
	_, err = s.Pause(t.Context(), api.RunName{Run: "r"})
	wantCode(t, "PauseRun of a cancelled run", err, api.RunNotRunnable)
	if err := s.Delete(t.Context(), api.RunName{Run: "r"}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(r.folder); err == nil {
		t.Error("the run's folder is still there")
	}
	wantCode(t, "TrainStep of a deleted run", trainStep(t.Context(), r, 1, ignore), api.RunNotRunnable)
}

func TestARunEndsDone(t *testing.T) {
	s, r := made(t, nil)
	start(t, s, 0.016)
	if steps := watch(t, r, 0); !slices.Equal(steps, []int64{1, 2}) || r.Info().State != Done {
		t.Errorf("0.016 kimg of 8 images are the steps %v of a run that is %s", steps, r.Info().State)
	}
	wantCode(t, "TrainStep", trainStep(t.Context(), r, 1, ignore), api.RunNotRunnable)
	_, err := s.Start(t.Context(), api.StartRun{Run: "r", Kimg: 0.01})
	wantCode(t, "StartRun for less", err, api.RunNotRunnable)
	start(t, s, 0.024)
	if steps := watch(t, r, 2); !slices.Equal(steps, []int64{3}) {
		t.Errorf("it goes on with %v", steps)
	}
}

// Cancelling a run ends a long TrainStep of it after the step it is in.
func TestCancelEndsTrainStep(t *testing.T) {
	s, r := made(t, slowly)
	ended := make(chan error, 1)
	go func() { ended <- trainStep(t.Context(), r, 1_000_000, ignore) }()
	waitFor(t, func() bool { return r.Info().Step > 0 })
	if state := r.Info().State; state != Running {
		t.Errorf("a run that is stepped is %s", state)
	}
	_, err := s.Start(t.Context(), api.StartRun{Run: "r"})
	wantCode(t, "StartRun", err, api.RunNotRunnable)
	if _, err := s.Cancel(t.Context(), api.RunName{Run: "r"}); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "TrainStep", <-ended, api.RunNotRunnable)
}

// A run can be started as soon as it is paused, also after a TrainStep whose caller has left.
func TestPausedMeansStartable(t *testing.T) {
	s, r := made(t, slowly)
	for range 3 {
		ctx, leave := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- trainStep(ctx, r, 1_000_000, func(api.Event) error { leave(); return nil }) }()
		<-ctx.Done()
		waitFor(t, func() bool { return r.Info().State == Paused })
		start(t, s, 1000)
		if _, err := s.Pause(t.Context(), api.RunName{Run: "r"}); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("TrainStep: %v", err)
		}
	}
}

// A step that panics fails its run, which goes back to what was stored, and nothing else.
func TestPanicFailsTheRunAlone(t *testing.T) {
	s, r := made(t, func(_ context.Context, row *train.Row) error {
		if row.Step == 2 {
			panic("of the device")
		}
		return nil
	})
	start(t, s, 1)
	watch(t, r, 0)
	info := r.Info()
	if info.State != Failed || info.Error != "A fault of the server ended step 2: panic: of the device" {
		t.Errorf("the run is %s: %s", info.State, info.Error)
	}
	if info := named(t, killed(t, s), "r").Info(); info.State != Failed || info.Step != 0 {
		t.Errorf("after a restart it is %+v", info)
	}
}

// A step after which a run diverges counts, and pauses it. A request learns of it.
func TestARunThatDiverges(t *testing.T) {
	lost := &train.DivergedError{Step: 2, Msg: "the loss has risen"}
	diverge := func(_ context.Context, row *train.Row) error {
		if row.Step%2 == 0 {
			return lost
		}
		return nil
	}
	s, r := made(t, diverge)
	start(t, s, 1)
	steps, info := watch(t, r, 0), r.Info()
	if len(steps) != 2 || info.State != Paused || info.Stopped == nil || info.Stopped.Reason != "diverged" ||
		info.StoredStep != 2 {
		t.Errorf("%v of a run that is %+v", steps, info)
	}
	_, r = made(t, diverge)
	var last api.Event
	if err := trainStep(t.Context(), r, 2, func(e api.Event) error { last = e; return nil }); err != nil {
		t.Fatal(err)
	}
	if last.Meta["warning"] != lost.Error() {
		t.Errorf("TrainStep says %v", last.Meta)
	}
}

// A run in the background leaves nine times what a step took to the requests that use the device. It goes on all the
// same, and answers while it waits.
func TestBackgroundStepsYield(t *testing.T) {
	const step = 5 * time.Millisecond
	s, r := made(t, func(context.Context, *train.Row) error { time.Sleep(step); return nil })
	s.cfg.Batcher.Widen(1)
	if err := s.cfg.Batcher.Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.cfg.Batcher.Release()
	began := time.Now()
	start(t, s, 1000)
	waitFor(t, func() bool { return r.Info().Step >= 4 })
	if took := time.Since(began); took < 9*3*step {
		t.Errorf("beside a request the run took its fourth step after %v", took)
	}
	if _, _, err := r.Model(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := s.Pause(t.Context(), api.RunName{Run: "r"}); err != nil {
		t.Error(err)
	}
}

// A server that ends says so to whoever waits for a run that has not begun. It stores what was stepped, and starts
// nothing.
func TestRest(t *testing.T) {
	s, r := made(t, slowly)
	waiting, err := s.place(t.Context(), api.CreateRun{Name: "waiting"}, &fake{}, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	watched := make(chan error, 1)
	go func() { watched <- waiting.watch(context.WithoutCancel(t.Context()), 0, false, ignore) }()
	start(t, s, 1000)
	waitFor(t, func() bool { return r.Info().Step > 0 })
	if err := s.PauseAndStoreAll(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantCode(t, "WatchRun", <-watched, api.Draining)
	if info := r.Info(); info.State != Paused || info.StoredStep != info.Step {
		t.Errorf("it rests as %+v", info)
	}
	_, err = s.Start(t.Context(), api.StartRun{Run: "r"})
	wantCode(t, "StartRun", err, api.Draining)
	wantCode(t, "TrainStep", trainStep(t.Context(), r, 1, ignore), api.Draining)
}

// Commands from everywhere at once leave a run whole: for the race detector.
func TestCommandsAtOnce(t *testing.T) {
	s, r := made(t, nil)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() { _ = trainStep(t.Context(), r, 20, ignore) })
		group.Go(func() {
			_, _ = s.Start(t.Context(), api.StartRun{Run: "r", Kimg: 1000})
			_, _ = s.Pause(t.Context(), api.RunName{Run: "r"})
		})
		group.Go(func() { _, _, _ = r.Model(t.Context()) })
		group.Go(func() { _ = r.watch(t.Context(), 0, true, ignore) })
	}
	group.Wait()
	if _, err := s.Pause(t.Context(), api.RunName{Run: "r"}); err != nil {
		t.Fatal(err)
	}
	info := r.Info()
	if steps := watch(t, r, 0); int64(len(steps)) != info.Step || info.StoredStep != info.Step {
		t.Errorf("%d rows of a run that is %+v", len(steps), info)
	}
	if after := named(t, killed(t, s), "r").Info(); after.Step != info.Step {
		t.Errorf("a restart finds it at step %d, not %d", after.Step, info.Step)
	}
}

// faultyDisk refuses what is to be written below a folder while it is full. It takes renames and deletions.
func faultyDisk(t *testing.T, folder string) (full *atomic.Bool) {
	t.Helper()
	full = new(atomic.Bool)
	full.Store(true)
	t.Cleanup(atomicdir.Intercept(func(e atomicdir.Effect) error {
		if full.Load() && strings.HasPrefix(e.Path, folder) && strings.Contains(e.Path, atomicdir.Prefix) &&
			(e.Name == "write" || e.Name == "sync") {
			return &os.PathError{Op: e.Name, Path: e.Path, Err: syscall.ENOSPC}
		}
		return nil
	}))
	return full
}

// A table of rows has the columns of train.RowColumns, the step as int64, and their values.
func TestRowsAreATable(t *testing.T) {
	values := make([]float64, len(train.RowColumns))
	for i := range values {
		values[i] = float64(i)
	}
	columns := WatchSchema(api.WatchRun{Run: "r"}).Columns
	batch := api.RowsBatch(train.StoredRows([][]float64{values, values}))
	if len(columns) != len(values) || len(batch.Cols) != len(values) || columns[0].Type != api.Int64 {
		t.Fatalf("columns %v, batch %v", columns, batch)
	}
	for i, column := range columns[1:] {
		numbers := batch.Cols[i+1].([]float64)
		if column.Name != train.RowColumns[i+1] || column.Type != api.Float64 ||
			!slices.Equal(numbers, []float64{values[i+1], values[i+1]}) {
			t.Errorf("column %v has %v, want %s with %v", column, numbers, train.RowColumns[i+1], values[i+1])
		}
	}
}
