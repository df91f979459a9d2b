package engine

import (
	"context"
	"encoding/json"
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
func (e *Engine) prepareTrainStep(_ context.Context, body json.RawMessage) (*Job, error) {
	var req api.TrainStep
	if err := api.Decode(body, &req); err != nil {
		return nil, err
	}
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
	return &Job{Schema: schema, Rows: int64(req.Steps), Bytes: bytes, Run: func(ctx context.Context, emit func(api.Event) error) error {
		return r.work(ctx, func() error {
			for i := range req.Steps {
				if err := r.oneStep(func() error { return r.step(ctx) }, emit, int64(i+1), int64(req.Steps)); err != nil {
					return err
				}
			}
			return nil
		})
	}}, nil
}

// work owns the training for a TrainStep request.
func (r *run) work(ctx context.Context, f func() error) error {
	if err := r.begin(ctx); err != nil {
		return err
	}
	defer r.finishSteps()
	return f()
}

// begin takes the training for a TrainStep request, ready to step.
func (r *run) begin(ctx context.Context) error {
	if err := r.acquire(ctx); err != nil {
		return err
	}
	err := r.mayWork(false) // asked again: the run may have been started or cancelled meanwhile
	if err == nil {
		err = r.open(ctx)
	}
	if err != nil {
		r.disown()
		return err
	}
	r.update(func() { r.stepping++ })
	return nil
}

// finishSteps gives the training back. A run that has been stepped is paused from then on.
func (r *run) finishSteps() {
	r.update(func() {
		r.stepping--
		if r.status.State == created && r.status.Step > 0 {
			r.status.State = paused
		}
	})
	if r.dirty && time.Since(r.saved) > storeEvery {
		if err := r.store(context.Background()); err != nil {
			r.e.log.Error("state of a run is not stored", "run", r.name, "error", err)
		}
	}
	r.disown()
}

// oneStep takes a step and sends its row.
func (r *run) oneStep(step func() error, emit func(api.Event) error, done, total int64) error {
	err := step()
	var lost *train.DivergedError
	if err != nil && !errors.As(err, &lost) {
		return err
	}
	meta := api.Done(done, total)
	if lost != nil { // the step counts; whether to go on is the caller's choice
		meta["warning"] = lost.Error()
	}
	r.mu.Lock()
	last := r.rows[len(r.rows)-1]
	r.mu.Unlock()
	return emit(api.Event{Batch: rowBatch([][]float64{last}), Meta: meta})
}
