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

// Stats has counters since the device was opened.
type Stats struct {
	Programs       int     // executables in the cache now
	Compiled       int64   // executables made
	FromDisk       int64   // of them, read from the cache on disk instead of compiled
	Rewritten      int64   // places in programs that were rewritten for XLA's CPU compiler
	CompileSeconds float64 // spent in making executables, including drawing the graphs
	BufferBytes    int64   // in live buffers
	BytesUp        int64   // copied from the host to buffers
	BytesDown      int64   // copied, or viewed, from buffers
}

// cache keeps the most recently used executables. It compiles each key once at a time, and finalises an evicted
// executable when its last run ends.
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
	seconds float64 // of compilation
	flops   int64   // of one run

	cache   *cache
	users   int  // runs in progress; guarded by cache.mu
	evicted bool // guarded by cache.mu
}

// newCache returns a cache of at most size executables.
func newCache(size int, c *client) (*cache, error) {
	l, err := lru.NewLRU(size, func(_ string, exe *executable) {
		exe.evicted = true
		exe.finalizeIfIdle()
	})
	return &cache{client: c, lru: l}, err
}

// acquire returns the key's executable for one run, which ends with release. If there is none, the caller compiles it,
// or waits for a compilation that has begun.
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
		// Look again: in a small cache the executable may have been evicted already.
	}
}

// lookup takes a reference on the key's executable. It returns nil if there is none.
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

// fill compiles a program into the cache. It runs on a goroutine of its own, and enters the device because its caller
// may leave before it ends.
func (c *cache) fill(key string, compile func() (*executable, error)) error {
	if err := c.client.enter(); err != nil {
		return err
	}
	defer c.client.leave()
	if exe := c.lookup(key); exe != nil {
		exe.release()
		return nil // another compilation ended between the caller's lookup and this one
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

// Watch shows other goroutines whether the work of a context waits for a compilation. The zero value is ready to use. A
// Watch is safe for concurrent use.
type Watch struct{ waits atomic.Pointer[waiting] }

// waiting is a wait for a compilation.
type waiting struct {
	key   string
	since time.Time
}

type watchKey struct{}

// With returns a context whose waits are shown by w.
func (w *Watch) With(ctx context.Context) context.Context {
	return context.WithValue(ctx, watchKey{}, w)
}

// Compiling returns the key of the program whose compilation the work waits for, and since when; ok is false if it does
// not wait.
func (w *Watch) Compiling() (key string, since time.Time, ok bool) {
	if now := w.waits.Load(); now != nil {
		return now.key, now.since, true
	}
	return "", time.Time{}, false
}

// waitsFor notes on the context's Watch, if any, that its work waits for a compilation until ended is called.
func waitsFor(ctx context.Context, key string) (ended func()) {
	w, ok := ctx.Value(watchKey{}).(*Watch)
	if !ok {
		return func() {}
	}
	now := &waiting{key: key, since: time.Now()}
	w.waits.Store(now)
	return func() { w.waits.CompareAndSwap(now, nil) }
}
