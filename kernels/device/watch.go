package device

import (
	"context"
	"sync/atomic"
	"time"
)

// Watch tells another goroutine what the work of a context waits for. The zero
// value is ready; it is safe for concurrent use.
type Watch struct{ waits atomic.Pointer[waiting] }

// waiting is a wait for a compilation.
type waiting struct {
	key   string
	since time.Time
}

type watchKey struct{}

// With returns a context whose waits w shows.
func (w *Watch) With(ctx context.Context) context.Context {
	return context.WithValue(ctx, watchKey{}, w)
}

// Compiling returns the key of the program whose compilation is being waited for,
// by whomever it was begun, and since when; ok is false where there is none.
func (w *Watch) Compiling() (key string, since time.Time, ok bool) {
	if now := w.waits.Load(); now != nil {
		return now.key, now.since, true
	}
	return "", time.Time{}, false
}

// waitsFor notes on the context's Watch, if it has one, that its work waits for a
// compilation, until ended is called.
func waitsFor(ctx context.Context, key string) (ended func()) {
	w, ok := ctx.Value(watchKey{}).(*Watch)
	if !ok {
		return func() {}
	}
	now := &waiting{key: key, since: time.Now()}
	w.waits.Store(now)
	return func() { w.waits.CompareAndSwap(now, nil) }
}
