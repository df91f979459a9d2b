package runs

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/explain"
	"github.com/anisoflight/anisoflight/internal/safely"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/train"
)

// storeEvery is the longest time a run at work goes without storing its state.
const storeEvery = time.Minute

// Why a background goroutine is told to stop.
var (
	errPause  = errors.New("paused")
	errCancel = errors.New("cancelled")
)

// Start trains a run in the background.
func (s *Runs) Start(ctx context.Context, req api.StartRun) (*Run, error) {
	r, err := s.Named(req.Run)
	if err != nil {
		return nil, err
	}
	if err := r.acquire(ctx); err != nil {
		return nil, err
	}
	defer r.disown()
	if err := r.mayWork(true); err != nil {
		return nil, err
	}
	if err := r.open(ctx); err != nil {
		return nil, err
	}
	target := req.Kimg
	if target == 0 {
		target = r.train.Config().Kimg
	}
	if now := r.Info().Kimg; target <= now {
		return nil, api.Errorf(api.RunNotRunnable, "The run %q has seen %g kimg already", r.name, now).
			WithHint("kimg counts from the run's beginning; ask for more than that.")
	}
	work, stop := context.WithCancelCause(context.Background())
	ended := make(chan struct{})
	r.update(func() {
		r.status.State, r.status.Target, r.stop, r.ended = Running, target, stop, ended
	})
	if err := r.storeStatus(); err != nil {
		s.log.Warn("status of a run is not stored", "run", r.name, "error", err)
	}
	go func() {
		defer close(ended)
		r.finish(safely.Do(func() error { return r.loop(work, target) }))
	}()
	return r, nil
}

// mayWork checks that a run may be stepped, or started.
func (r *Run) mayWork(start bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch st := r.status.State; {
	case r.stop != nil:
		return api.Errorf(api.RunNotRunnable, "The run %q is running in the background", r.name).
			WithHint("PauseRun it first.")
	case start && r.stepping > 0:
		return api.Errorf(api.RunNotRunnable, "The run %q is being stepped", r.name).
			WithHint("Wait for its TrainStep to end.")
	case st == Created, st == Paused, st == Done && start:
		return nil
	default:
		return api.Errorf(api.RunNotRunnable, "The run %q is %s", r.name, st).
			WithHint("Create a new run; SaveModel keeps what this one has learned.")
	}
}

// loop steps until the target is reached or ctx ends. It owns the training for one step at a time, so that SaveModel
// finds its moment between two steps.
func (r *Run) loop(ctx context.Context, target float64) error {
	for {
		reached, err := r.loopStep(ctx, target)
		if err != nil || reached {
			return err
		}
	}
}

func (r *Run) loopStep(ctx context.Context, target float64) (reached bool, err error) {
	if err := r.acquire(ctx); err != nil {
		return false, context.Cause(ctx)
	}
	defer r.disown()
	if err := r.Step(ctx); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return false, err
	}
	if time.Since(r.saved) > storeEvery {
		if err := r.store(ctx); err != nil {
			return false, err
		}
	}
	return r.Info().Kimg >= target, nil
}

// took notes the row of a step. A step after which the run stops counts, too.
func (r *Run) took(row train.Row, err error) error {
	stopped := r.stopped(err)
	if err == nil || stopped != nil {
		r.dirty = true
		r.add(row)
		r.of.steps.Add(1)
	}
	if stopped != nil {
		r.update(func() { r.status.Stopped = stopped })
	}
	return err
}

// stopped says why a run stopped of its own with a step that was taken; nil where err is something else.
func (r *Run) stopped(err error) *api.Stopped {
	var lost *train.DivergedError
	var early *train.StoppedError
	var s *api.Stopped
	switch {
	case errors.As(err, &lost):
		s = &api.Stopped{Reason: "diverged", Step: lost.Step, Message: lost.Error()}
	case errors.As(err, &early):
		s = &api.Stopped{Reason: early.Reason, Step: early.Step, Message: early.Error()}
	default:
		return nil
	}
	if best := r.train.Best(); best != nil {
		s.BestStep, s.BestEnergy = &best.Step, &best.Energy
	}
	return s
}

// finish stores the state when the background goroutine ends, for whatever reason.
func (r *Run) finish(why error) {
	ctx := context.Background()
	_ = r.acquire(ctx) // cannot fail without an end of ctx
	defer r.disown()
	state, text := Done, ""
	var memory *device.MemoryError
	var lost *train.DivergedError
	var early *train.StoppedError
	var fault *safely.Panic
	switch {
	case why == nil:
	case errors.Is(why, errPause):
		state = Paused
	case errors.Is(why, errCancel):
		state = Cancelled
	case errors.As(why, &early): // it has what it was to learn, or can learn no more; StartRun goes on all the same
		r.of.log.Warn("run stopped early", "run", r.name, "reason", why)
	case errors.As(why, &memory): // there may be more of it later
		state, text = Paused, api.ErrorOf(explain.Error(why)).Message
		r.of.log.Warn("run paused", "run", r.name, "error", why)
	case errors.As(why, &lost): // the user decides whether to go on
		state, text = Paused, lost.Error()
		r.of.log.Warn("run paused", "run", r.name, "error", why)
	case errors.As(why, &fault): // what the step had done is not to be trusted: the run ends as it was stored last
		state, text = Failed, fmt.Sprintf("A fault of the server ended step %d: %.80s", r.Info().Step+1, fault.Error())
		r.of.log.Error("run failed", "run", r.name, "error", why, "stack", string(fault.Stack))
		r.dirty = false
		_ = safely.Do(func() error {
			r.closeTraining()
			return nil
		})
	default:
		state, text = Failed, api.ErrorOf(explain.Error(why)).Message
		r.of.log.Error("run failed", "run", r.name, "error", why)
	}
	r.mu.Lock()
	r.status.State, r.status.Error = state, text
	r.mu.Unlock()
	if err := r.store(ctx); err != nil {
		r.of.log.Error("state of a run is not stored", "run", r.name, "error", err)
	}
	if state != Paused {
		r.closeTraining()
	}
	r.update(func() { r.stop = nil })
}

// halt stops the background goroutine, if there is one, and waits for its end.
func (r *Run) halt(ctx context.Context, why error) error {
	r.mu.Lock()
	stop, ended := r.stop, r.ended
	r.mu.Unlock()
	if stop == nil {
		return nil
	}
	stop(why)
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Pause stops a run after its present step, with its state stored.
func (s *Runs) Pause(ctx context.Context, name string) (*Run, error) {
	r, err := s.Named(name)
	if err != nil {
		return nil, err
	}
	if err := r.halt(ctx, errPause); err != nil {
		return nil, err
	}
	if st := r.Info().State; st != Created && st != Paused && st != Done {
		return nil, api.Errorf(api.RunNotRunnable, "The run %q is %s", r.name, st)
	}
	return r, nil
}

// Cancel ends a run for good, with its state stored.
func (s *Runs) Cancel(ctx context.Context, name string) (*Run, error) {
	r, err := s.Named(name)
	if err != nil {
		return nil, err
	}
	if err := r.halt(ctx, errCancel); err != nil {
		return nil, err
	}
	if err := r.acquire(ctx); err != nil { // a TrainStep under way ends when it finds the run cancelled
		return nil, err
	}
	defer r.disown()
	if st := r.Info().State; st == Created || st == Paused {
		r.update(func() { r.status.State = Cancelled })
		if err := r.store(ctx); err != nil {
			return nil, err
		}
		r.closeTraining()
	}
	return r, nil
}

// Close pauses every run, stores what is not stored and frees the device.
func (s *Runs) Close(ctx context.Context) error {
	var errs []error
	for _, r := range s.All() {
		errs = append(errs, r.halt(ctx, errPause), r.close(ctx))
	}
	return errors.Join(errs...)
}

func (r *Run) close(ctx context.Context) error {
	if err := r.acquire(ctx); err != nil {
		return err
	}
	defer r.disown()
	defer r.closeTraining()
	return r.store(ctx)
}
