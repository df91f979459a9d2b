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

// warm begins the warm-up that the configuration asks for. It takes no slots of the device: a request waits for it only
// where both need the same program, and then no longer than for a compilation of its own.
func (e *Engine) warm() {
	if len(e.cfg.Warm) == 0 {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	e.warming = &warming{
		stop: stop, ended: make(chan struct{}),
		info: api.Warming{Total: len(warmBatches) * len(e.cfg.Warm)},
	}
	go func() {
		defer close(e.warming.ended)
		err := safely.Do(func() error {
			e.warmAll(ctx)
			return nil
		})
		if err != nil {
			e.log.Error("the warm-up has ended", "error", err)
		}
	}()
}

// warmAll compiles for one of the small batches after the other, then for the large ones.
func (e *Engine) warmAll(ctx context.Context) {
	dev, err := e.device.get()
	if err != nil {
		e.log.Warn("cannot warm up", "error", err)
		return
	}
	start, before := time.Now(), dev.Stats()
	for _, batch := range warmBatches {
		for _, name := range e.cfg.Warm {
			if !e.idle(ctx) {
				return
			}
			e.warming.note(func(i *api.Warming) { i.Current = name + " " + strconv.Itoa(batch) })
			began := time.Now()
			if err := e.warmOne(ctx, name, batch); err == nil {
				e.log.Info("warmed up", "model", name, "batch", batch, "seconds", time.Since(began).Seconds())
			} else if ctx.Err() == nil {
				e.log.Warn("cannot warm up", "model", name, "batch", batch, "error", explain.Error(err))
				e.warming.note(func(i *api.Warming) { i.Failed++ })
			}
			e.warming.note(func(i *api.Warming) { i.Current, i.Done = "", i.Done+1 })
		}
	}
	after := dev.Stats()
	e.log.Info("the warm-up is done", "programs", after.Compiled-before.Compiled, "from_disk",
		after.FromDisk-before.FromDisk,
		"seconds", time.Since(start).Seconds())
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

// idle waits until nobody waits for the device; false where ctx ends first.
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

// snapshot says how far the warm-up is; nil where none was asked for.
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
