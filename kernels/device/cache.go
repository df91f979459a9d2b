package device

import (
	"context"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/sync/singleflight"

	"github.com/gomlx/gomlx/backends"
)

// Stats counts what the program cache has done since the device was opened.
type Stats struct {
	Programs       int     // executables in the cache now
	Compiled       int64   // compilations that succeeded
	CompileSeconds float64 // spent in them, drawing the graph included
	Hits           int64   // runs and look-ups that found an executable
	Evicted        int64   // executables dropped because the cache was full
}

// cache keeps the most recently used executables. Compilation of one key happens
// once at a time; an evicted executable is finalised when its last run ends.
type cache struct {
	backend backends.Backend
	flight  singleflight.Group

	mu     sync.Mutex
	lru    *lru.LRU[string, *executable]
	stats  Stats
	closed bool
}

func newCache(backend backends.Backend, size int) (*cache, error) {
	c := &cache{backend: backend}
	l, err := lru.NewLRU(size, func(_ string, exe *executable) {
		exe.evicted = true
		exe.finalizeIfIdle()
	})
	c.lru = l
	return c, err
}

// acquire returns the program's executable for the length of one run.
func (c *cache) acquire(ctx context.Context, p *Program) (*executable, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		exe, err := c.lookup(p.key)
		if exe != nil || err != nil {
			return exe, err
		}
		done := c.flight.DoChan(p.key, func() (any, error) { return nil, c.compile(p) })
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case r := <-done:
			if r.Err != nil {
				return nil, r.Err
			}
		}
		// Look again: with a tiny cache the executable may already be gone, and
		// then it is compiled again.
	}
}

// lookup takes a reference on the key's executable; nil where there is none.
func (c *cache) lookup(key string) (*executable, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	exe, ok := c.lru.Get(key)
	if !ok {
		return nil, nil
	}
	c.stats.Hits++
	exe.users++
	return exe, nil
}

func (c *cache) compile(p *Program) error {
	exe, err := compile(c.backend, p.key, p.build)
	if err != nil {
		return err
	}
	exe.cache = c
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		exe.exec.Finalize()
		return ErrClosed
	}
	c.stats.Compiled++
	c.stats.CompileSeconds += exe.seconds
	if c.lru.Add(p.key, exe) {
		c.stats.Evicted++
	}
	return nil
}

func (c *cache) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
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
