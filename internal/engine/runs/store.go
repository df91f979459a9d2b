package runs

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/base/safely"
	"github.com/anisoflight/anisoflight/internal/engine/explain"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
)

const (
	// storeEvery is the shortest time between two stores of a run that nobody asks for.
	storeEvery = time.Second
	// storeShare is the time between two such stores over the duration of the last, so that storing takes at most 5 % of
	// the time.
	storeShare = 19
	// retryWithin is the longest time before a failed store is retried.
	retryWithin = 30 * time.Second
)

// keeper records what of a run is stored. It belongs to the owner. If a store fails, its data stay in memory and it is
// retried.
type keeper struct {
	step    int64            // of the stored state
	looks   int              // that it has
	status  []byte           // the stored status.json
	endedAt time.Time        // when a store ended last, well or not
	cost    time.Duration    // of the last store that ended well
	failed  int              // stores since then
	err     error            // of the last store
	lost    bool             // the device has lost the state: there is none to store
	writing chan storeResult // the result of the store that is written beside the owner; nil if there is none
}

// storeResult is a store: what it writes, and its result.
type storeResult struct {
	state  *checkpoint.Run // nil: the status alone
	looks  int             // that it has
	status []byte          // nil: the state alone
	next   *status         // that is stored, if it is not the run's own
	took   time.Duration
	err    error
}

// interval returns the time from the end of a store to the beginning of the next.
func (k *keeper) interval(shortest time.Duration) time.Duration {
	if k.failed > 0 {
		return min(retryWithin, shortest<<min(k.failed, 10))
	}
	return max(shortest, storeShare*k.cost)
}

func (k *keeper) storeError() string {
	if k.err == nil {
		return ""
	}
	if sentence := explain.Disk(k.err); sentence != "" {
		return sentence
	}
	return "The state could not be written; the server's log has the reason"
}

// ahead reports whether steps or looks are not stored.
func (r *Run) ahead() bool {
	return (r.step != r.keeper.step || r.looks != r.keeper.looks) && !r.keeper.lost
}

// statusText returns the status.json that the next store writes, nil if it is already stored.
func (r *Run) statusText() ([]byte, error) {
	if r.status.State == Broken { // what there is stays as it is
		return nil, nil
	}
	s := &r.status
	if r.next != nil {
		s = r.next
	}
	text, err := s.encode()
	if bytes.Equal(text, r.keeper.status) {
		text = nil
	}
	return text, err
}

// due returns the time of the next store that nobody asks for, nil if there is nothing to store.
func (r *Run) due() <-chan time.Time {
	if r.keeper.writing != nil {
		return nil
	}
	if text, err := r.statusText(); !r.ahead() && (err != nil || text == nil) {
		return nil
	}
	return time.After(time.Until(r.keeper.endedAt.Add(r.keeper.interval(r.runs.storeEvery))))
}

// store stores what is not stored yet.
func (r *Run) store() error {
	r.awaitStore()
	w := r.write(r.unstored())
	r.noteStore(w)
	return w.err
}

// storeBeside is store in another goroutine, while the owner goes on.
func (r *Run) storeBeside() {
	w, result := r.unstored(), make(chan storeResult, 1)
	r.keeper.writing = result
	go func() { result <- r.write(w) }()
}

// awaitStore waits until nothing of the run is being stored.
func (r *Run) awaitStore() {
	if r.keeper.writing != nil {
		r.noteStore(<-r.keeper.writing)
	}
}

// unstored returns what is not stored yet: a copy of the state if steps have been taken, and the status.
func (r *Run) unstored() storeResult {
	w := storeResult{next: r.next, looks: r.looks}
	if w.status, w.err = r.statusText(); w.err != nil || !r.ahead() || r.training == nil {
		return w
	}
	w.err = safely.Do(func() (err error) {
		if w.state, err = r.training.State(context.Background()); err != nil {
			r.keeper.lost = true // of the device: what it held is gone
			return err
		}
		w.state.Schedule = r.withProvenance(w.state.Schedule, nil)
		return nil
	})
	return w
}

func (r *Run) write(w storeResult) storeResult {
	if w.err != nil {
		return w
	}
	began := time.Now()
	w.err = safely.Do(func() error {
		if w.state != nil {
			if err := checkpoint.SaveRun(StatePath(r.folder), PreviousPath(r.folder), w.state); err != nil {
				return err
			}
		}
		if w.status == nil {
			return nil
		}
		return atomicdir.WriteFile(StatusPath(r.folder), w.status)
	})
	w.took = time.Since(began)
	return w
}

// noteStore records the result of a store. If it failed, training in the background pauses, and a run that was to end
// is paused.
func (r *Run) noteStore(w storeResult) {
	k := &r.keeper
	k.writing, k.endedAt, k.err = nil, time.Now(), w.err
	if w.err == nil {
		k.failed = 0
		if w.state != nil {
			k.step, k.looks, k.cost = w.state.Step, w.looks, w.took
		}
		if w.status != nil {
			k.status = w.status
		}
	} else {
		k.failed++
		r.runs.log.Error("a run is not stored; it is tried again", "run", r.name, "error", w.err, "stack",
			stackOf(w.err))
		if r.work != nil {
			r.work.stop(&notStored{w.err})
		}
	}
	if w.next != nil && w.next == r.next {
		if w.err == nil || k.lost {
			r.status, r.next = *w.next, nil
		} else {
			r.status.State, r.status.Error = Paused, api.ErrorOf(r.storageError(w.err)).Message
		}
	}
	if w.err == nil && !r.ahead() && r.status.isOver() {
		r.closeTraining()
	}
}

// stackOf returns the stack of a panic, "" of another error.
func stackOf(err error) string {
	if fault, ok := errors.AsType[*safely.Panic](err); ok {
		return string(fault.Stack)
	}
	return ""
}

// storeAndWait stores what is not stored yet. The end of ctx ends the wait, not the store.
func (r *Run) storeAndWait(ctx context.Context) error {
	result := make(chan error, 1)
	go func() {
		result <- r.do(context.WithoutCancel(ctx), func() error { return r.storageError(r.store()) })
	}()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// notStored is why training in the background pauses when a store failed.
type notStored struct{ err error }

func (e *notStored) Error() string { return "the run could not be stored: " + e.err.Error() }

func (e *notStored) Unwrap() error { return e.err }

// storageError returns the error of a request after which the run could not be stored.
func (r *Run) storageError(err error) error {
	sentence := explain.Disk(err)
	if err == nil || sentence == "" || errors.Is(err, context.Canceled) {
		return err
	}
	return api.Errorf(api.Storage, "%s: the run %q is in memory at step %d, and stored up to step %d", sentence,
		r.name, r.step, r.keeper.step).WithHint("The server retries; make room, or mend its data folder.")
}

// checkRoom checks that the disk has room for the next state in addition to the last two, which are kept.
func (r *Run) checkRoom() error {
	free, err := atomicdir.Free(r.folder)
	if err != nil {
		return err
	}
	need := 2*atomicdir.Bytes(StatePath(r.folder)) - atomicdir.Bytes(PreviousPath(r.folder))
	if free >= need {
		return nil
	}
	return api.Errorf(api.Storage,
		"Training needs %s on the disk for states of the run %q, and %s are free; nothing was changed",
		explain.MiB(need), r.name, explain.MiB(free)).WithHint("Make room on the server's disk.")
}
