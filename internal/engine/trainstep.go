package engine

import (
	"context"
	"errors"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/train"
)

// rowColumns describes train.RowColumns: the step is int64, the rest float64.
func rowColumns() []api.Column {
	columns := []api.Column{{Name: train.RowColumns[0], Type: api.Int64}}
	for _, name := range train.RowColumns[1:] {
		columns = append(columns, api.Column{Name: name, Type: api.Float64})
	}
	return columns
}

// rowBatch makes the columns of some rows.
func rowBatch(rows [][]float64) *api.Batch {
	step := make([]int64, len(rows))
	cols := []any{step}
	for i := range train.RowColumns[1:] {
		col := make([]float64, len(rows))
		for k, row := range rows {
			col[k] = row[i+1]
		}
		cols = append(cols, col)
	}
	for k, row := range rows {
		step[k] = int64(row[0])
	}
	return &api.Batch{Rows: len(rows), Cols: cols}
}

// prepareTrainStep takes steps of the run's own batches.
func (e *Engine) prepareTrainStep(_ context.Context, req api.TrainStep) (*api.Job, error) {
	r, err := e.runNamed(req.Run)
	if err != nil {
		return nil, err
	}
	if err := r.mayWork(false); err != nil {
		return nil, err
	}
	schema := api.Schema{Columns: rowColumns(), Metadata: metadata("TrainStep", req, "run", req.Run)}
	bytes, err := e.price(schema, int64(req.Steps))
	if err != nil {
		return nil, err
	}
	return &api.Job{Schema: schema, Rows: int64(req.Steps), Bytes: bytes, Run: func(ctx context.Context, emit func(api.Event) error) error {
		if err := r.begin(); err != nil {
			return err
		}
		defer r.end()
		for i := range req.Steps {
			if err := r.oneStep(ctx, r.step, emit, int64(i+1), int64(req.Steps)); err != nil {
				return err
			}
		}
		return nil
	}}, nil
}

// begin notes a TrainStep request. The request owns the training for one step at a time, so that others, such as
// SaveModel, find their moment.
func (r *run) begin() error {
	if err := r.mayWork(false); err != nil {
		return err
	}
	r.update(func() { r.stepping++ })
	return nil
}

// end is the end of a TrainStep request. A run that has been stepped is paused from then on.
func (r *run) end() {
	ctx := context.Background()
	_ = r.acquire(ctx) // cannot fail without an end of ctx
	defer r.disown()
	r.update(func() {
		r.stepping--
		if r.status.State == created && r.status.Step > 0 {
			r.status.State = paused
		}
	})
	if r.dirty && time.Since(r.saved) > storeEvery {
		if err := r.store(ctx); err != nil {
			r.e.log.Error("state of a run is not stored", "run", r.name, "error", err)
		}
	}
}

// oneStep owns the training for one step and sends its row.
func (r *run) oneStep(ctx context.Context, step func(context.Context) error, emit func(api.Event) error, done, total int64) error {
	row, err := r.ownStep(ctx, step)
	var lost *train.DivergedError
	var early *train.StoppedError
	if err != nil && !errors.As(err, &lost) && !errors.As(err, &early) {
		return err
	}
	meta := api.Done(done, total)
	if err != nil { // the step counts; whether to go on is the caller's choice
		meta["warning"] = err.Error()
	}
	return emit(api.Event{Batch: rowBatch([][]float64{row}), Meta: meta})
}

// ownStep takes a step and gives its row.
func (r *run) ownStep(ctx context.Context, step func(context.Context) error) ([]float64, error) {
	if err := r.acquire(ctx); err != nil {
		return nil, err
	}
	defer r.disown()
	if err := r.mayWork(false); err != nil { // it may have been cancelled since the last step
		return nil, err
	}
	if err := r.open(ctx); err != nil {
		return nil, err
	}
	err := step(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.rows) == 0 {
		return nil, err
	}
	return r.rows[len(r.rows)-1], err
}
