package runs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/anisoflight/anisoflight/base/safely"
	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/explain"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

const (
	// keepEvery is the shortest time between two stores of a run that nobody asks for.
	keepEvery = time.Second
	// keepShare is the time between two such stores in times of what the last one took, so that storing takes at most
	// 5 % of the time.
	keepShare = 19
	// retryWithin is the longest time before a store that failed is tried again.
	retryWithin = 30 * time.Second
)

// keeper knows what of a run is stored. Every step arms its timer, whoever took it; what a request or a signal wants
// stored is stored by the same method, [Run.keep]. A store that fails is tried again, and what it was to store stays in
// memory.
//
// But for turn everything is guarded by the run's mu.
type keeper struct {
	turn   chan struct{} // holds one token while nobody stores; taken before the run's own
	step   int64         // of the stored state
	status []byte        // the stored status.json
	ended  time.Time     // when a store ended last, well or not
	cost   time.Duration // of the last store that ended well
	failed int           // stores since then
	err    error         // of the last store
	next   *time.Timer   // of the next store; nil where there is nothing to store
	lost   bool          // the device has lost the state: there is none to store
	gone   bool          // the run is deleted or closed: nothing is stored any more
}

// interval returns the time from the end of a store to the beginning of the next.
func (k *keeper) interval() time.Duration {
	if k.failed > 0 {
		return min(retryWithin, keepEvery<<min(k.failed, 10))
	}
	return max(keepEvery, keepShare*k.cost)
}

// behind reports whether there is something to store. The caller holds the run's mu.
func (r *Run) behind() bool {
	if r.keeper.gone {
		return false
	}
	text, err := r.status.encode()
	return r.ahead() || err == nil && !bytes.Equal(text, r.keeper.status)
}

// ahead reports whether steps have been taken that are not stored. The caller holds the run's mu.
func (r *Run) ahead() bool { return r.step != r.keeper.step && !r.keeper.lost && !r.keeper.gone }

// arm sees to it that what there is to store will be stored.
func (r *Run) arm() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.keeper.next == nil && r.behind() {
		r.keeper.next = time.AfterFunc(time.Until(r.keeper.ended.Add(r.keeper.interval())), r.tick)
	}
}

// tick is a store that is due.
func (r *Run) tick() {
	r.mu.Lock()
	r.keeper.next = nil
	r.mu.Unlock()
	err := safely.Do(func() error {
		err := r.keep(context.Background())
		if err == nil {
			r.settle()
		}
		return err
	})
	if fault := (*safely.Panic)(nil); errors.As(err, &fault) {
		r.of.log.Error("a fault of the server kept a run from being stored", "run", r.name, "error", err, "stack",
			string(fault.Stack))
	}
}

// keep stores what is not stored yet: the state, where steps have been taken, and the status. A copy of the state is
// made between two steps, and written while training goes on. The end of ctx ends the waiting for that moment, not the
// writing. The caller does not own the training.
func (r *Run) keep(ctx context.Context) error {
	if err := take(ctx, r.keeper.turn); err != nil {
		return err
	}
	defer r.arm()
	defer give(r.keeper.turn)
	began, state, err := r.copied(ctx)
	if err != nil {
		return err
	}
	if state != nil {
		err = checkpoint.SaveRun(StatePath(r.folder), PreviousPath(r.folder), state)
	}
	if err == nil {
		err = r.storeStatus()
	}
	r.kept(state, time.Since(began), err)
	return err
}

// copied returns a copy of the state as it is between two steps, and when making it began; nil where that state is
// stored.
func (r *Run) copied(ctx context.Context) (time.Time, *checkpoint.Run, error) {
	if !r.stepped() {
		return time.Now(), nil, nil
	}
	if err := r.acquire(ctx); err != nil {
		return time.Time{}, nil, err
	}
	defer r.disown()
	began := time.Now()
	if r.train == nil || !r.stepped() {
		return began, nil, nil
	}
	state, err := r.train.State(context.WithoutCancel(ctx))
	if err == nil {
		state.Schedule = r.learned(state.Schedule, r.train.Config(), state.Rows)
	} else { // of the device: what it held is lost
		r.mu.Lock()
		r.keeper.lost = true
		r.mu.Unlock()
	}
	return began, state, err
}

// kept notes what became of a store. A run in the background that cannot be stored pauses.
func (r *Run) kept(state *checkpoint.Run, took time.Duration, err error) {
	k := &r.keeper
	r.update(func() {
		k.ended, k.err = time.Now(), err
		switch {
		case err != nil:
			k.failed++
		case state != nil:
			k.step, k.cost, k.failed = state.Step, took, 0
		default:
			k.failed = 0
		}
		if err != nil && r.stop != nil {
			r.stop(&notStored{err})
		}
	})
	if err != nil {
		r.of.log.Error("a run is not stored; it is tried again", "run", r.name, "error", err)
	}
}

// notStored is why a run in the background pauses when it cannot be stored.
type notStored struct{ err error }

func (e *notStored) Error() string { return "the run could not be stored: " + e.err.Error() }

func (e *notStored) Unwrap() error { return e.err }

// unkept is the answer to a request after which the run could not be stored.
func (r *Run) unkept(err error) error {
	sentence := explain.Disk(err)
	if err == nil || sentence == "" || errors.Is(err, context.Canceled) {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return api.Errorf(api.Storage, "%s: the run %q is kept in memory at step %d, and stored up to step %d", sentence,
		r.name, r.step, r.keeper.step).
		WithHint("It is tried again by itself; make room, or mend the server's data folder.")
}

// storeError says why the last store failed; the caller holds the run's mu.
func (k *keeper) storeError() string {
	if k.err == nil {
		return ""
	}
	if sentence := explain.Disk(k.err); sentence != "" {
		return sentence
	}
	return "The state could not be written; the server's log has the reason"
}

// room checks that the disk has room for two states of the run beside the one that is stored: the next one, and the one
// before, which is kept.
func (r *Run) room() error {
	size, kept := folderBytes(StatePath(r.folder)), folderBytes(PreviousPath(r.folder))
	free, err := freeBytes(r.folder)
	if err != nil {
		return err
	}
	if need := 2*size - kept; free < need {
		return api.Errorf(api.Storage,
			"Training needs %s on the disk for states of the run %q, and %s are free; nothing was changed",
			mib(need), r.name, mib(free)).WithHint("Make room on the server's disk.")
	}
	return nil
}

func mib(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// settle lets a run become what it was to be, now that its state is stored.
func (r *Run) settle() {
	r.mu.Lock()
	end := r.end
	r.mu.Unlock()
	if end == nil {
		return
	}
	r.update(func() {
		if r.end == end && !r.ahead() {
			r.status, r.end = *end, nil
		}
	})
	r.rest()
}
