package runs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/base/safely"
	"github.com/anisoflight/anisoflight/internal/base/setting"
	"github.com/anisoflight/anisoflight/internal/engine/explain"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/processes"
	"github.com/anisoflight/anisoflight/train"
)

// work is the training of a run in the background.
type work struct {
	stop  context.CancelCauseFunc
	ended chan struct{} // closed when the run is at rest again
}

// Why training in the background has to stop.
var (
	errPause  = errors.New("paused")
	errCancel = errors.New("cancelled")
)

// errEnding is the error of requests to train while the server ends.
func errEnding() error { return api.Errorf(api.Draining, "The server is shutting down") }

// Start trains a run in the background.
func (s *Runs) Start(ctx context.Context, req api.StartRun) (info api.RunInfo, err error) {
	r, err := s.Named(req.Run)
	if err != nil {
		return info, err
	}
	err = r.do(ctx, func() error { return r.start(ctx, req.Kimg) })
	return r.Info(), err
}

func (r *Run) start(ctx context.Context, target float64) error {
	if r.runs.ending.Err() != nil {
		return errEnding()
	}
	if err := r.mayWork(true); err != nil {
		return err
	}
	if err := r.checkRoom(); err != nil {
		return err
	}
	if err := r.open(ctx); err != nil {
		return err
	}
	if target == 0 {
		target = r.training.Config().Kimg
	}
	if target <= r.kimg {
		return api.Errorf(api.RunNotRunnable, "The run %q has seen %g kimg already", r.name, r.kimg).
			WithHint("kimg counts from the run's beginning; ask for more than that.")
	}
	if err := r.runs.join(ctx, r); err != nil {
		return err
	}
	background, stop := context.WithCancelCause(context.Background())
	r.status.State, r.status.Error, r.status.Target, r.next = Running, "", target, nil
	_ = r.store() // a failure is tried again
	r.work = &work{stop: stop, ended: make(chan struct{})}
	go func() {
		why := safely.Do(func() error { return r.train(background, target) })
		_ = r.do(context.Background(), func() error { r.finish(why); return nil }) // it is not retired while it works
	}()
	return nil
}

// mayWork checks that a run may be stepped, or started.
func (r *Run) mayWork(start bool) error {
	if err := r.readable(); err != nil {
		return err
	}
	switch state := r.status.State; {
	case r.work != nil:
		return r.notRunnable("running in the background").WithHint("PauseRun it first.")
	case start && r.stepping > 0:
		return r.notRunnable("being stepped").WithHint("Wait for its TrainStep to end.")
	case state == Created, state == Paused, state == Done && start:
		return nil
	default:
		return r.notRunnable(state).WithHint("Create a new run; SaveModel keeps what this one has learned.")
	}
}

// train takes steps until the target is reached or ctx ends. Each step waits until requests have had their share of the
// device.
func (r *Run) train(ctx context.Context, target float64) error {
	err := r.look(ctx, false)
	for {
		if err == nil {
			err = r.runs.cfg.Batcher.Yield(ctx)
		}
		var row train.Row
		if err == nil {
			err = r.takeStep(ctx, r.runs.cfg.Batcher.TakeStep, func() (err error) {
				if err = r.open(ctx); err == nil {
					row, err = r.advance(ctx, nil, nil)
				}
				return err
			})
		}
		if err == nil {
			err = r.look(ctx, row.Kimg >= target)
		}
		switch {
		case ctx.Err() != nil && err != nil:
			return context.Cause(ctx)
		case err != nil, row.Kimg >= target:
			return err
		}
	}
}

// takeStep has the owner call step in a slot of the device.
func (r *Run) takeStep(ctx context.Context, inSlot func(context.Context, func() error) error, step func() error) error {
	return r.stepToken.Take(ctx, func() error {
		return inSlot(ctx, func() error { return r.do(ctx, step) })
	})
}

// advance takes a step on images or, if they are nil, on the run's own next batch. A step after which the run stops
// also counts.
func (r *Run) advance(ctx context.Context, images []float32, labels []int32) (row train.Row, err error) {
	err = safely.Do(func() error {
		if images == nil {
			row, err = r.training.Step(ctx)
		} else {
			row, err = r.training.StepOn(ctx, images, labels)
		}
		return err
	})
	if stackOf(err) != "" {
		r.keeper.lost = true // the step may have left the state half changed: it is not to be stored
		_ = safely.Do(func() error { r.closeTraining(); return nil })
		return row, err
	}
	stopped := stoppedBy(err)
	if stopped != nil {
		r.status.Stopped = stopped
	}
	if row.Step > 0 && (err == nil || stopped != nil) {
		r.rows, r.step, r.kimg = r.training.Rows(0), row.Step, row.Kimg
		if known := r.rows[:len(r.rows)-1]; lossNotFinite(row) && !slices.ContainsFunc(known, lossNotFinite) {
			r.status.Notes = append(slices.Clip(r.status.Notes), notFiniteLoss(row))
		}
		r.runs.steps.Add(1)
	}
	return row, err
}

func lossNotFinite(row train.Row) bool { return !setting.Finite(row.Loss) }

// notFiniteLoss returns the sentence on a step whose loss is not finite.
func notFiniteLoss(row train.Row) string {
	return fmt.Sprintf("step %d: the loss is not finite (%g), and the step changed nothing; if it stays so, begin again "+
		"with lower learning rates", row.Step, row.Loss)
}

// stoppedBy returns why a step stopped the run; nil if it did not.
func stoppedBy(err error) *api.Stopped {
	var lost *train.DivergedError
	if !errors.As(err, &lost) {
		return nil
	}
	return &api.Stopped{Reason: "diverged", Step: lost.Step, Message: lost.Error()}
}

// finish stores the state when training in the background ends, and then publishes the run's new state. A run that
// cannot be stored is paused until it can.
func (r *Run) finish(why error) {
	next := r.status
	next.State, next.Error = r.outcome(why)
	r.next = &next
	_ = r.store() // a failure is tried again
	ended := r.work.ended
	r.work = nil
	r.publish()
	close(ended)
}

// outcome returns the state of a run whose training in the background ends with the error why, or with none.
func (r *Run) outcome(why error) (state, text string) {
	var memory *device.MemoryError
	var lost *train.DivergedError
	var unstored *notStored
	var fault *safely.Panic
	var end *processes.EndError
	if why == nil {
		return Done, ""
	}
	reason := api.ErrorOf(explain.Error(why))
	state, text = Failed, reason.Message
	switch {
	case errors.Is(why, errPause):
		return Paused, ""
	case errors.Is(why, errCancel):
		return Cancelled, ""
	case errors.As(why, &unstored): // the disk may have room later
		return Paused, api.ErrorOf(r.storageError(unstored.err)).Message
	case errors.As(why, &lost): // the user decides whether to go on
		state, text = Paused, lost.Error()
	case errors.As(why, &memory), errors.As(why, &end), // there may be more of it later, and the other processes again
		reason.Code == api.Damaged: // with an intact copy in its place it can go on
		state = Paused
	case errors.As(why, &fault): // the run ends as it was stored last
		text = fmt.Sprintf("A fault of the server ended step %d: %.80s", r.step+1, fault.Error())
	}
	r.runs.log.Error("run "+state, "run", r.name, "error", why, "stack", stackOf(why))
	return state, text
}

// beginStepping opens the training, and counts a TrainStep request. Until release, the run can be neither started nor
// deleted. release stores the steps even if the request failed. If the store fails, the steps stay in memory and the
// error says so. A run that was only created is then paused.
func (r *Run) beginStepping() (release func() error, err error) {
	if r.runs.ending.Err() != nil {
		return nil, errEnding()
	}
	err = r.do(context.Background(), func() error {
		if err := r.mayWork(false); err != nil {
			return err
		}
		if err := r.checkRoom(); err != nil {
			return err
		}
		if err := r.open(context.Background()); err != nil {
			return err
		}
		r.stepping++
		return nil
	})
	return sync.OnceValue(func() error {
		err := r.do(context.Background(), func() error {
			if r.stepping--; r.status.State == Created && r.step > 0 {
				r.status.State = Paused
			}
			return r.storageError(r.store())
		})
		if r.ended.Err() != nil { // it is deleted, and there is nothing to store
			return nil
		}
		return err
	}), err
}

// trainStep takes a step for a TrainStep request and sends its row. The step uses the caller's images [B, H, W, C] and
// labels, or the run's own next batch if they are nil.
func (r *Run) trainStep(
	ctx context.Context, images []float32, labels []int32, emit func(api.Event) error, done, total int64,
) error {
	var row train.Row
	var rows []train.Row
	err := r.look(ctx, false)
	if err == nil {
		err = r.takeStep(ctx, r.runs.cfg.Batcher.Take, func() (err error) {
			if err = r.mayWork(false); err != nil { // it may have been cancelled meanwhile
				return err
			}
			if err = r.open(ctx); err != nil {
				return err
			}
			row, err = r.advance(ctx, images, labels)
			rows = r.rows
			return err
		})
	}
	meta := api.Done(done, total)
	if n := len(rows); err == nil && lossNotFinite(row) && (done == 1 || n < 2 || !lossNotFinite(rows[n-2])) {
		meta["warning"] = notFiniteLoss(row)
	}
	switch {
	case stoppedBy(err) != nil: // the step counts; the caller decides whether to go on
		meta["warning"] = err.Error()
	case err != nil:
		return err
	}
	return emit(api.Event{Batch: api.RowsBatch([]train.Row{row}), Meta: meta})
}

// halt stops training in the background, if there is any, and waits for its end.
func (r *Run) halt(ctx context.Context, why error) error {
	w := r.snapshot.Load().work
	if w == nil {
		return nil
	}
	w.stop(why)
	select {
	case <-w.ended:
		return nil
	case <-r.ended.Done():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Pause stops a run after its present step and stores its state. If the store fails, the run is paused all the same,
// and the error names the last stored step.
func (s *Runs) Pause(ctx context.Context, req api.RunName) (info api.RunInfo, err error) {
	r, err := s.Named(req.Run)
	if err != nil {
		return info, err
	}
	if err := r.halt(ctx, errPause); err != nil {
		return info, err
	}
	if err := r.readable(); err != nil {
		return info, err
	}
	if state := r.snapshot.Load().resting; state != Created && state != Paused && state != Done {
		return info, r.notRunnable(state)
	}
	err = r.storeAndWait(ctx)
	return r.Info(), err
}

// Cancel ends a run for good and stores its state. If the store fails, the run is only paused.
func (s *Runs) Cancel(ctx context.Context, req api.RunName) (info api.RunInfo, err error) {
	r, err := s.Named(req.Run)
	if err != nil {
		return info, err
	}
	if err := r.halt(ctx, errCancel); err != nil {
		return info, err
	}
	err = r.do(ctx, func() error { // a TrainStep under way ends when it finds the run cancelled
		state, next := r.status.State, r.next
		if state != Created && state != Paused {
			return nil
		}
		r.status.State, r.next = Cancelled, nil
		if err := r.store(); err != nil {
			r.status.State, r.next = state, next
			return r.storageError(err)
		}
		return nil
	})
	return r.Info(), err
}
