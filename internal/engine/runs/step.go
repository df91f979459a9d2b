package runs

import (
	"context"
	"errors"

	"github.com/anisoflight/anisoflight/base/safely"
	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/train"
)

// RowColumns describes train.RowColumns: the step is int64, the rest float64.
func RowColumns() []api.Column {
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

// Begin notes a TrainStep request. The request owns the training for one step at a time, so that others, such as
// SaveModel and the keeper, find their moment.
func (r *Run) Begin() error {
	if r.of.resting() {
		return errResting()
	}
	if err := r.mayWork(false); err != nil {
		return err
	}
	if err := r.room(); err != nil {
		return err
	}
	r.update(func() { r.stepping++ })
	return nil
}

// End is the end of a TrainStep request. A run that has been stepped is paused from then on.
func (r *Run) End() {
	_ = r.acquire(context.Background()) // cannot fail without an end of ctx
	defer r.disown()
	r.update(func() {
		r.stepping--
		if r.status.State == Created && r.step > 0 {
			r.status.State = Paused
		}
	})
}

// Store stores what has been stepped, even if ctx ends. Where that fails it stays in memory, and the error says so.
func (r *Run) Store(ctx context.Context) error { return r.unkept(r.keep(context.WithoutCancel(ctx))) }

// TakeStep owns the training for one step and sends its row.
func (r *Run) TakeStep(
	ctx context.Context, step func(context.Context) error, emit func(api.Event) error, done, total int64,
) error {
	row, err := r.ownStep(ctx, step)
	var lost *train.DivergedError
	var early *train.StoppedError
	if err != nil && !errors.As(err, &lost) && !errors.As(err, &early) {
		return err
	}
	meta := api.Done(done, total)
	if note := r.Note(); note != "" {
		meta["warning"] = note
	}
	if err != nil { // the step counts; whether to go on is the caller's choice
		meta["warning"] = err.Error()
	}
	return emit(api.Event{Batch: rowBatch([][]float64{row}), Meta: meta})
}

// ownStep takes a step and gives its row.
func (r *Run) ownStep(ctx context.Context, step func(context.Context) error) ([]float64, error) {
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
	err := safely.Do(func() error { return step(ctx) })
	if fault := (*safely.Panic)(nil); errors.As(err, &fault) {
		r.distrust()
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.rows) == 0 {
		return nil, err
	}
	return r.rows[len(r.rows)-1], err
}

// Step takes a step of the run's own batches in a slot of the device. The caller owns the training.
func (r *Run) Step(ctx context.Context) error {
	return r.of.cfg.Queue.Take(ctx, r.ownBatch(ctx))
}

// ownBatch returns a step on the next of the run's own batches.
func (r *Run) ownBatch(ctx context.Context) func() error {
	return func() error {
		row, err := r.train.Step(ctx)
		return r.took(row, err)
	}
}

// StepOn is Step on the caller's own images [B, H, W, C] and labels.
func (r *Run) StepOn(ctx context.Context, images []float32, labels []int32) error {
	return r.of.cfg.Queue.Take(ctx, func() error {
		row, err := r.train.StepOn(ctx, images, labels)
		return r.took(row, err)
	})
}

// MayStep checks that the run may be stepped by requests.
func (r *Run) MayStep() error { return r.mayWork(false) }
