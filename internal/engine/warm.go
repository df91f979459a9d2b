package engine

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/base/safely"
	"github.com/anisoflight/anisoflight/internal/engine/batch"
	"github.com/anisoflight/anisoflight/internal/engine/explain"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// warming compiles programs in the background before anybody asks for them.
type warming struct {
	stop  context.CancelFunc
	ended chan struct{} // closed when the background goroutine has ended

	mu   sync.Mutex
	info api.Warming
}

// warmBatches are the batches that samples are computed in, by rising cost of compiling.
var warmBatches = []int{batch.SmallBucket, batch.LargeBucket}

// patience is how long the warm-up looks away when somebody waits for the device.
const patience = 50 * time.Millisecond

// warm begins the warm-up that the configuration asks for: for one of the small batches after the other, then for the
// large ones. It takes no slots of the device: a request waits for it only if both need the same program, and then no
// longer than for a compilation of its own.
func (e *Engine) warm() {
	if len(e.cfg.Warm) == 0 {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	w := &warming{stop: stop, ended: make(chan struct{})}
	w.info.Total = len(warmBatches) * len(e.cfg.Warm)
	e.warming = w
	go func() {
		defer close(w.ended)
		for _, size := range warmBatches {
			for _, name := range e.cfg.Warm {
				if !e.idle(ctx) {
					return
				}
				w.note(func(i *api.Warming) { i.Current = name + " " + strconv.Itoa(size) })
				began := time.Now()
				err := safely.Do(func() error { return e.warmOne(ctx, name, size) })
				if err == nil {
					e.log.Info("warmed up", "model", name, "batch", size, "seconds", time.Since(began).Seconds())
				} else if ctx.Err() == nil {
					e.log.Warn("cannot warm up", "model", name, "batch", size, "error", explain.Error(err))
					w.note(func(i *api.Warming) { i.Failed++ })
				}
				w.note(func(i *api.Warming) { i.Current, i.Done = "", i.Done+1 })
			}
		}
	}()
}

// warmOne compiles what samples of MODEL, or MODEL:SCHEDULE, run in batches of one size.
func (e *Engine) warmOne(ctx context.Context, what string, batch int) error {
	name, sched, _ := strings.Cut(what, ":")
	m, err := e.catalog.Model(name)
	if err != nil {
		return err
	}
	var ref api.ScheduleRef
	if sched != "" {
		ref = api.ScheduleRef{Name: sched, T: api.DefaultT}
	}
	_, network, err := e.catalog.ScheduleAndNetwork(ref, m)
	if err != nil {
		return err
	}
	if err := m.Hold(); err != nil {
		return err
	}
	defer m.Release()
	return network.Warm(ctx, batch, solver.MaxHistory)
}

// idle waits until nobody waits for the device; false if ctx ends first.
func (e *Engine) idle(ctx context.Context) bool {
	for ctx.Err() == nil {
		if waiting, _ := e.queue.Load(); waiting+e.batcher.Waiting() == 0 {
			return true
		}
		select {
		case <-time.After(patience):
		case <-ctx.Done():
		}
	}
	return false
}

func (w *warming) note(change func(*api.Warming)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(&w.info)
}

// snapshot says how far the warm-up is; nil if none was asked for.
func (w *warming) snapshot() *api.Warming {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	info := w.info
	return &info
}

// close ends the warm-up. A compilation under way is the device's.
func (w *warming) close() {
	if w != nil {
		w.stop()
		<-w.ended
	}
}
