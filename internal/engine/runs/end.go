package runs

import (
	"context"
	"errors"
	"os"
	"sync"

	"github.com/anisoflight/anisoflight/base/safely"
	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
)

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

// Pause stops a run after its present step, with its state stored. Where that fails the run is paused all the same, and
// the error says up to where it is stored.
func (s *Runs) Pause(ctx context.Context, name string) (*Run, error) {
	r, err := s.Named(name)
	if err != nil {
		return nil, err
	}
	if err := r.halt(ctx, errPause); err != nil {
		return nil, err
	}
	if err := r.whole(); err != nil {
		return nil, err
	}
	if st := r.state(); st != Created && st != Paused && st != Done {
		return nil, api.Errorf(api.RunNotRunnable, "The run %q is %s", r.name, st)
	}
	if err := r.keep(ctx); err != nil {
		return nil, r.unkept(err)
	}
	r.settle()
	return r, nil
}

// Cancel ends a run for good, with its state stored. Where that fails it is only paused.
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
	before := r.state()
	idle := before == Created || before == Paused
	if idle {
		r.update(func() { r.status.State, r.end = Cancelled, nil })
	}
	r.disown()
	if !idle {
		return r, nil
	}
	if err := r.keep(ctx); err != nil {
		r.update(func() { r.status.State = before })
		return nil, r.unkept(err)
	}
	r.rest()
	return r, nil
}

// Delete deletes a run and its folder.
func (s *Runs) Delete(ctx context.Context, name string) error {
	s.changes.Lock()
	defer s.changes.Unlock()
	r, err := s.Named(name)
	if err != nil {
		return err
	}
	return s.replaced(ctx, r, func() error {
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

// replaced calls f, which puts something or nothing in the place of a run that is not at work, and then lets go of the
// run. An error of f leaves it as it was. The caller holds changes.
func (s *Runs) replaced(ctx context.Context, r *Run, f func() error) error {
	if err := take(ctx, r.keeper.turn); err != nil { // nothing of it is being stored
		return err
	}
	defer give(r.keeper.turn)
	if err := r.acquire(ctx); err != nil {
		return err
	}
	defer r.disown()
	r.statusFile.Lock()
	defer r.statusFile.Unlock()
	r.mu.Lock()
	busy := r.stop != nil || r.stepping > 0 && r.status.State != Cancelled
	r.mu.Unlock()
	if busy {
		return api.Errorf(api.RunNotRunnable, "The run %q is at work", r.name).WithHint("CancelRun it first.")
	}
	if err := f(); err != nil {
		return err
	}
	r.closeTraining()
	r.update(func() { r.status.State = Cancelled })
	r.retire()
	return nil
}

// retire ends the keeping of a run.
func (r *Run) retire() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keeper.gone = true
	if r.keeper.next != nil {
		r.keeper.next.Stop()
	}
}

// Rest pauses every run that is at work, stores what is not stored, and lets none be started or stepped from then on
// but by the requests that are stepping it already. Watchers are told that the server ends.
func (s *Runs) Rest(ctx context.Context) error {
	s.endOnce.Do(func() { close(s.ending) })
	return s.each(func(r *Run) error { return errors.Join(r.halt(ctx, errPause), r.keep(ctx)) })
}

// Close is Rest, after which the device is freed.
func (s *Runs) Close(ctx context.Context) error {
	err := s.Rest(ctx)
	return errors.Join(err, s.each(func(r *Run) error {
		r.retire()
		if err := r.acquire(ctx); err != nil {
			return err
		}
		defer r.disown()
		r.closeTraining()
		return nil
	}))
}

// each calls f for every run, all at a time.
func (s *Runs) each(f func(*Run) error) error {
	all := s.All()
	errs := make([]error, len(all))
	var group sync.WaitGroup
	for i, r := range all {
		group.Go(func() { errs[i] = safely.Do(func() error { return f(r) }) })
	}
	group.Wait()
	return errors.Join(errs...)
}
