package engine

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// Job is an operation that was checked and priced and has not begun. It holds nothing that would have to be given back.
type Job struct {
	Schema api.Schema
	Rows   int64 // −1 where not known beforehand
	Bytes  int64 // of the rows; −1 where not known beforehand
	// Run does the work and hands its events to emit, in order, from one goroutine. It ends early with emit's error or
	// the context's. It may be called once.
	Run func(ctx context.Context, emit func(api.Event) error) error
	// Waits tells, at any time and from any goroutine, what Run waits for where that is a compilation:
	// {"event":"compiling",...}; nil otherwise.
	Waits func() api.Meta
}

// Exchange is an open operation that takes tensors in.
type Exchange struct {
	Out    api.Schema
	Window int // batches that the client should keep unanswered
	// Do answers one batch, whose columns are those of the schema the exchange was opened with. Calls do not overlap. The
	// batch's memory is lent until Do returns: what it keeps or emits has its own.
	Do func(ctx context.Context, in api.Batch, emit func(api.Event) error) error
	// Waits is as a Job's, for Do.
	Waits func() api.Meta
	// End gives what the last message's metadata says beyond rows and time. It may be nil.
	End func(ctx context.Context) (map[string]any, error)
	// Close releases what the exchange holds, however it ended. Never nil; called once.
	Close func()
}

// Upload receives a table. Nothing is stored before Commit; after it, or Abort, the upload is over.
type Upload interface {
	// Write takes one batch of the schema that the upload was opened with. It does not keep the batch's memory.
	Write(api.Batch) error
	// Commit checks the whole, stores it and tells its rows.
	Commit() (rows int64, err error)
	// Abort forgets everything received.
	Abort()
}

type preparer func(e *Engine, ctx context.Context, body json.RawMessage) (*Job, error)

var jobs = map[string]preparer{
	"Sample":           (*Engine).prepareSample,
	"EvaluateSchedule": (*Engine).prepareEvaluateSchedule,
	"TrainStep":        (*Engine).prepareTrainStep,
	"WatchRun":         (*Engine).prepareWatchRun,
	"EvaluateModel":    (*Engine).prepareEvaluateModel,
	"BenchSchedule":    (*Engine).prepareBenchSchedule,
	"Predict":          (*Engine).preparePredict,
	"Dataset":          (*Engine).prepareDataset,
	"Basis":            (*Engine).prepareBasis,
}

// Prepare checks and prices an operation that gives rows. The context bounds the preparation alone.
func (e *Engine) Prepare(ctx context.Context, op string, body json.RawMessage) (*Job, error) {
	prepare, ok := jobs[op]
	if !ok {
		return nil, unknownOp("operation that gives rows", op, jobs)
	}
	job, err := prepare(e, ctx, body)
	if err != nil {
		return nil, explain(err)
	}
	work, watch := job.Run, new(device.Watch)
	job.Run = func(ctx context.Context, emit func(api.Event) error) error {
		leave, err := e.enter()
		if err != nil {
			return err
		}
		defer leave()
		return explain(work(watch.With(ctx), emit))
	}
	job.Waits = waits(watch)
	return job, nil
}

type exchanger func(e *Engine, ctx context.Context, body json.RawMessage, in api.Schema) (*Exchange, error)

var exchanges = map[string]exchanger{
	"Sample":           (*Engine).exchangeSample,
	"TrainStep":        (*Engine).exchangeTrainStep,
	"Denoise":          (*Engine).exchangeDenoise,
	"ScheduleGradient": (*Engine).exchangeScheduleGradient,
}

// Exchange opens an operation that takes rows of the schema in.
func (e *Engine) Exchange(ctx context.Context, op string, body json.RawMessage, in api.Schema) (*Exchange, error) {
	open, ok := exchanges[op]
	if !ok {
		return nil, unknownOp("exchange", op, exchanges)
	}
	leave, err := e.enter()
	if err != nil {
		return nil, err
	}
	x, err := open(e, ctx, body, in)
	if err != nil {
		leave()
		return nil, explain(err)
	}
	release := x.Close
	x.Close = func() {
		release()
		leave()
	}
	do, watch := x.Do, new(device.Watch)
	x.Do = func(ctx context.Context, in api.Batch, emit func(api.Event) error) error {
		return do(watch.With(ctx), in, emit)
	}
	x.Waits = waits(watch)
	return x, nil
}

// waits says what a watch sees in the words of the contract. A program's key begins with its name.
func waits(w *device.Watch) func() api.Meta {
	return func() api.Meta {
		key, since, ok := w.Compiling()
		if !ok {
			return nil
		}
		name, _, _ := strings.Cut(key, " ")
		return api.Meta{"event": "compiling", "program": name, "compile_s": time.Since(since).Seconds()}
	}
}

func unknownOp[V any](what, op string, known map[string]V) error {
	return api.Errorf(api.OpNotFound, "There is no %s %q", what, op).
		WithHint("There are: %s.", strings.Join(slices.Sorted(maps.Keys(known)), " "))
}
