package connect

import (
	"context"
	"errors"
	"os/signal"
	"syscall"

	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/engine"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// Engine is the engine of this process, with its device and the folder's lock.
type Engine struct {
	*engine.Engine
	dev  *device.Device
	lock *catalog.Lock
}

// OpenEngine opens the data folder whose lock is held. The lock is released with the engine, or at once if that fails.
func OpenEngine(ctx context.Context, e command.Env, lock *catalog.Lock) (_ *Engine, err error) {
	// Whoever reads the log or the output may end first: that is an error of a write then, and not the end of a process
	// that has runs to store.
	signal.Ignore(syscall.SIGPIPE)
	o := &Engine{lock: lock}
	defer func() {
		if err != nil {
			err = errors.Join(err, o.closeRest())
		}
	}()
	at, err := precision(e)
	if err != nil {
		return nil, err
	}
	if e.Has("listen") || e.Has("measure_peak") && e.Toggle("measure_peak") { // others open it where they need it
		if o.dev, err = OpenDevice(e); err != nil {
			return nil, err
		}
		if err := measurePeak(ctx, e, o.dev, at); err != nil {
			return nil, err
		}
	}
	o.Engine, err = engine.Open(ctx, engine.Config{
		Device: o.dev, OpenDevice: func() (*device.Device, error) { return OpenDevice(e) }, Precision: at,
		Dir: e.Text("data"), Version: command.Version(), Logger: e.Log,
		MaxBytes: limit(e, "max_bytes"), MaxUploadBytes: limit(e, "max_upload_bytes"), MaxRequests: limit(e, "max_requests"),
		Slots: limit(e, "slots"),
		World: worldOf(ctx),
		Warm:  warm(e), Apart: e.Has("dynamic_batching") && !e.Toggle("dynamic_batching"),
	})
	return o, err
}

// Release stores the runs and gives back the device and the folder.
func (o *Engine) Release(ctx context.Context) error {
	return errors.Join(o.Close(ctx), o.closeRest())
}

func (o *Engine) closeRest() error {
	var err error
	if o.dev != nil {
		err = o.dev.Close()
	}
	return errors.Join(err, o.lock.Release())
}

// limit returns a limit that serve sets and the other commands leave at its default.
func limit(e command.Env, name string) int64 {
	if !e.Has(name) {
		return 0
	}
	return e.Whole(name)
}

// warm lists what serve is to warm up.
func warm(e command.Env) []string {
	if !e.Has("warm") {
		return nil
	}
	return command.Words(e.Text("warm"))
}
