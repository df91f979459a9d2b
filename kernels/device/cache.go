package device

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gomlx/gomlx/backends"
	"github.com/gomlx/gomlx/pkg/core/shapes"
	lru "github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/sync/singleflight"
)

// Stats counts what has been done since the device was opened.
type Stats struct {
	Programs       int     // executables in the cache now
	Compiled       int64   // executables made
	FromDisk       int64   // of them, read from the cache on disk instead of compiled
	Rewritten      int64   // places in programs that were given the form in which XLA for the host is fast
	CompileSeconds float64 // spent in making them, drawing the graphs included
	BufferBytes    int64   // in buffers that were not released
	BytesUp        int64   // copied from the host to buffers
	BytesDown      int64   // copied, or viewed, from buffers
}

// cache keeps the executables used last. One key is compiled once at a time; an evicted executable is finalised when
// its last run ends.
type cache struct {
	client *client
	flight singleflight.Group

	mu    sync.Mutex
	lru   *lru.LRU[string, *executable]
	stats Stats
}

// executable is a compiled program in the cache.
type executable struct {
	exec    backends.Executable
	inputs  []shapes.Shape
	seconds float64 // that compiling took
	flops   int64   // of one run

	cache   *cache
	users   int  // runs in progress; guarded by cache.mu
	evicted bool // guarded by cache.mu
}

// newCache returns a cache of so many executables.
func newCache(size int, c *client) (*cache, error) {
	l, err := lru.NewLRU(size, func(_ string, exe *executable) {
		exe.evicted = true
		exe.finalizeIfIdle()
	})
	return &cache{client: c, lru: l}, err
}

// acquire returns the key's executable for the length of one run, which ends with release. If there is none, it is
// compiled: by the caller, or by who compiles it already.
func (c *cache) acquire(ctx context.Context, key string, compile func() (*executable, error)) (*executable, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if exe := c.lookup(key); exe != nil {
			return exe, nil
		}
		ended := waitsFor(ctx, key)
		done := c.flight.DoChan(key, func() (any, error) { return nil, c.fill(key, compile) })
		var err error
		select {
		case <-ctx.Done():
			err = ctx.Err()
		case r := <-done:
			err = r.Err
		}
		ended()
		if err != nil {
			return nil, err
		}
		// Look again: in a small cache the executable may be gone already, and then it is compiled again.
	}
}

// lookup takes a reference on the key's executable; nil where there is none.
func (c *cache) lookup(key string) *executable {
	c.mu.Lock()
	defer c.mu.Unlock()
	exe, ok := c.lru.Get(key)
	if !ok {
		return nil
	}
	exe.users++
	return exe
}

// fill compiles a program into the cache. It runs on its own goroutine, and enters the device because its caller may
// leave before it is done.
func (c *cache) fill(key string, compile func() (*executable, error)) error {
	if err := c.client.enter(); err != nil {
		return err
	}
	defer c.client.leave()
	if exe := c.lookup(key); exe != nil {
		exe.release()
		return nil // another flight landed between the caller's look and this one
	}
	exe, err := compile()
	if err != nil {
		return err
	}
	exe.cache = c
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Compiled++
	c.stats.CompileSeconds += exe.seconds
	c.lru.Add(key, exe)
	return nil
}

// purge finalises all executables; nobody is running one.
func (c *cache) purge() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lru.Purge()
}

func (c *cache) snapshot() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Programs = c.lru.Len()
	return s
}

func (e *executable) release() {
	e.cache.mu.Lock()
	defer e.cache.mu.Unlock()
	e.users--
	e.finalizeIfIdle()
}

// finalizeIfIdle frees an evicted executable that nobody runs. The caller holds the cache's lock.
func (e *executable) finalizeIfIdle() {
	if e.evicted && e.users == 0 && e.exec != nil {
		e.exec.Finalize()
		e.exec = nil
	}
}

// Watch tells another goroutine what the work of a context waits for. The zero value is ready; it is safe for
// concurrent use.
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

// Compiling returns the key of the program whose compilation is being waited for, by whomever it was begun, and since
// when; ok is false where there is none.
func (w *Watch) Compiling() (key string, since time.Time, ok bool) {
	if now := w.waits.Load(); now != nil {
		return now.key, now.since, true
	}
	return "", time.Time{}, false
}

// waitsFor notes on the context's Watch, if it has one, that its work waits for a compilation, until ended is called.
func waitsFor(ctx context.Context, key string) (ended func()) {
	w, ok := ctx.Value(watchKey{}).(*Watch)
	if !ok {
		return func() {}
	}
	now := &waiting{key: key, since: time.Now()}
	w.waits.Store(now)
	return func() { w.waits.CompareAndSwap(now, nil) }
}
