package auth

import (
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"
)

// Watched is a value read from files, read anew when they change.
type Watched[T any] struct {
	log   *slog.Logger
	load  func() (T, error)
	paths []string

	mu     sync.Mutex
	value  T
	stamps []stamp
	looked time.Time
}

// stamp distinguishes one state of a file from the next.
type stamp struct {
	size     int64
	modified time.Time
}

// lookEvery is how often the files are looked at, at most: they are looked at when the value is asked for.
const lookEvery = time.Second

// Watch loads a value, and again whenever one of the files has changed.
func Watch[T any](log *slog.Logger, load func() (T, error), paths ...string) (*Watched[T], error) {
	w := &Watched[T]{log: log, load: load, paths: paths, looked: time.Now()}
	w.stamps = w.look()
	var err error
	w.value, err = load()
	return w, err
}

// Get returns the value. Files that cannot be read, or hold something else, leave it as it is, which is logged once for
// each change.
func (w *Watched[T]) Get() T {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.looked) < lookEvery {
		return w.value
	}
	w.looked = time.Now()
	now := w.look()
	if slices.EqualFunc(now, w.stamps, func(a, b stamp) bool { return a.size == b.size && a.modified.Equal(b.modified) }) {
		return w.value
	}
	w.stamps = now
	value, err := w.load()
	if err != nil {
		w.log.Error("changed files are not taken over", "files", w.paths, "error", err)
		return w.value
	}
	w.log.Info("changed files are taken over", "files", w.paths)
	w.value = value
	return value
}

// look returns the files' stamps; a missing file has the zero stamp.
func (w *Watched[T]) look() []stamp {
	stamps := make([]stamp, len(w.paths))
	for i, path := range w.paths {
		if info, err := os.Stat(path); err == nil {
			stamps[i] = stamp{info.Size(), info.ModTime()}
		}
	}
	return stamps
}
