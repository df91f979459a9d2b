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

// Work returns what each kind of program has done; a kind is the first word of a
// program's key.
func (d *Device) Work() map[string]Work {
	d.work.mu.Lock()
	defer d.work.mu.Unlock()
	return maps.Clone(d.work.kinds)
}

type workbook struct {
	mu    sync.Mutex
	kinds map[string]Work
}

func (b *workbook) add(p *Program, took time.Duration) {
	kind, _, _ := strings.Cut(p.key, " ")
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.kinds == nil {
		b.kinds = map[string]Work{}
	}
	w := b.kinds[kind]
	w.Runs++
	w.FLOPs += p.flops
	w.Seconds += took.Seconds()
	b.kinds[kind] = w
}
