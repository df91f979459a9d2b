package device

import (
	"maps"
	"strings"
	"sync"
	"time"
)

// Work is what the runs of one kind of program have done since the device was opened.
type Work struct {
	Runs    int64
	FLOPs   int64   // see [Program.FLOPs]
	Seconds float64 // that the runs took; runs side by side count each
}

type workbook struct {
	mu    sync.Mutex
	kinds map[string]Work
}

// add counts a run of the program of that key.
func (b *workbook) add(key string, flops int64, took time.Duration) {
	kind, _, _ := strings.Cut(key, " ")
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.kinds == nil {
		b.kinds = map[string]Work{}
	}
	w := b.kinds[kind]
	w.Runs++
	w.FLOPs += flops
	w.Seconds += took.Seconds()
	b.kinds[kind] = w
}

func (b *workbook) snapshot() map[string]Work {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.kinds)
}
