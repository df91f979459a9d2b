package runs

import (
	"context"
	"errors"
	"fmt"

	"github.com/anisoflight/anisoflight/base/safely"
	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/explain"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/processes"
	"github.com/anisoflight/anisoflight/train"
)

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
	if s.resting() {
		return nil, errResting()
	}
	if err := r.mayWork(true); err != nil {
		return nil, err
	}
	if err := r.room(); err != nil {
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
	if err := s.join(ctx, r); err != nil {
		return nil, err
	}
	work, stop := context.WithCancelCause(context.Background())
	ended := make(chan struct{})
	r.update(func() {
		r.status.State, r.status.Error, r.status.Target, r.end = Running, "", target, nil
		r.stop, r.ended = stop, ended
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
	if err := r.whole(); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch st := r.status.State; {
	case r.keeper.gone:
		return api.Errorf(api.RunNotRunnable, "The run %q is deleted", r.name)
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
// and the keeper find their moment between two steps, and while it waits for its turn behind requests.
func (r *Run) loop(ctx context.Context, target float64) error {
	for {
		reached, err := r.loopStep(ctx, target)
		if err != nil || reached {
			return err
		}
	}
}

func (r *Run) loopStep(ctx context.Context, target float64) (reached bool, err error) {
	if err := r.of.cfg.Queue.Yield(ctx); err != nil {
		return false, context.Cause(ctx)
	}
	if err := r.acquire(ctx); err != nil {
		return false, context.Cause(ctx)
	}
	defer r.disown()
	if err := r.of.cfg.Queue.TakeStep(ctx, r.ownBatch(ctx)); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return false, err
	}
	return r.Info().Kimg >= target, nil
}

// took notes the row of a step. A step after which the run stops counts, too.
func (r *Run) took(row train.Row, err error) error {
	stopped := r.stopped(err)
	if row.Step > 0 && (err == nil || stopped != nil) {
		r.add(row)
		r.of.steps.Add(1)
	}
	if stopped != nil {
		r.update(func() { r.status.Stopped = stopped })
	}
	r.arm()
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

// finish stores the state when the background goroutine ends, for whatever reason, and then says what has become of
// the run. A run that cannot be stored is paused until it can.
func (r *Run) finish(why error) {
	state, text := r.outcome(why)
	err := r.keep(context.Background())
	unkept := r.unkept(err)
	r.update(func() {
		r.stop = nil
		if err != nil && !r.keeper.lost {
			end := r.status
			end.State, end.Error = state, text
			r.end, state, text = &end, Paused, api.ErrorOf(unkept).Message
		}
		r.status.State, r.status.Error = state, text
	})
	r.rest()
}

// outcome says what becomes of a run whose background goroutine ends with an error, or with none.
func (r *Run) outcome(why error) (state, text string) {
	var memory *device.MemoryError
	var lost *train.DivergedError
	var early *train.StoppedError
	var unstored *notStored
	var fault *safely.Panic
	var end processes.EndError
	log := r.of.log
	switch {
	case why == nil:
		return Done, ""
	case errors.Is(why, errPause):
		return Paused, ""
	case errors.Is(why, errCancel):
		return Cancelled, ""
	case errors.As(why, &unstored): // the disk may have room later
		return Paused, api.ErrorOf(r.unkept(unstored.err)).Message
	case errors.As(why, &early): // it has what it was to learn, or can learn no more; StartRun goes on all the same
		log.Warn("run stopped early", "run", r.name, "reason", why)
		return Done, ""
	case errors.As(why, &memory), errors.As(why, &end): // there may be more of it later, and the other processes again
		log.Warn("run paused", "run", r.name, "error", why)
		return Paused, api.ErrorOf(explain.Error(why)).Message
	case api.ErrorOf(explain.Error(why)).Code == api.Damaged: // with an intact copy in its place it can go on
		log.Error("run paused", "run", r.name, "error", why)
		return Paused, api.ErrorOf(explain.Error(why)).Message
	case errors.As(why, &lost): // the user decides whether to go on
		log.Warn("run paused", "run", r.name, "error", why)
		return Paused, lost.Error()
	case errors.As(why, &fault): // the run ends as it was stored last
		log.Error("run failed", "run", r.name, "error", why, "stack", string(fault.Stack))
		_ = r.acquire(context.Background()) // cannot fail without an end of ctx
		defer r.disown()
		r.distrust()
		return Failed, fmt.Sprintf("A fault of the server ended step %d: %.80s", r.Info().Step+1, fault.Error())
	}
	log.Error("run failed", "run", r.name, "error", why)
	return Failed, api.ErrorOf(explain.Error(why)).Message
}

// rest stores the status of a run that has come to rest, and frees the device of one that is over and stored.
func (r *Run) rest() {
	if err := r.storeStatus(); err != nil {
		r.of.log.Error("status of a run is not stored; it is tried again", "run", r.name, "error", err)
		r.arm()
	}
	_ = r.acquire(context.Background()) // cannot fail without an end of ctx
	defer r.disown()
	r.mu.Lock()
	over := !r.ahead() && r.status.State != Running && r.status.State != Paused && r.status.State != Created
	r.mu.Unlock()
	if over {
		r.closeTraining()
	}
}
