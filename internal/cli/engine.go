package cli

import (
	"context"
	"errors"
	"math"
	"net"
	"slices"

	"github.com/anisoflight/anisoflight/internal/engine"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
)

var precisionOption = option{name: "precision", local: true, usage: "`arithmetic` of networks: float32 (default), tf32 or bfloat16"}

// opened is the engine of this process, with its device and the folder's lock.
type opened struct {
	*engine.Engine
	dev  *device.Device
	lock *catalog.Lock
}

// openEngine opens the data folder whose lock is held. The lock is released with the engine, or at once if that fails.
func openEngine(ctx context.Context, e env, lock *catalog.Lock) (_ *opened, err error) {
	o := &opened{lock: lock}
	defer func() {
		if err != nil {
			err = errors.Join(err, o.closeRest())
		}
	}()
	precision, err := e.precision()
	if err != nil {
		return nil, err
	}
	if e.has("listen") || e.has("measure_peak") && e.toggle("measure_peak") { // others open it where they need it
		if o.dev, err = openDevice(e); err != nil {
			return nil, err
		}
		if err := measurePeak(ctx, e, o.dev, precision); err != nil {
			return nil, err
		}
	}
	o.Engine, err = engine.Open(ctx, engine.Config{
		Device: o.dev, OpenDevice: func() (*device.Device, error) { return openDevice(e) }, Precision: precision,
		Dir: e.text("data"), Version: Version(), Logger: e.log,
		MaxBytes: e.limit("max_bytes"), MaxUploadBytes: e.limit("max_upload_bytes"), MaxRequests: e.limit("max_requests"), Slots: e.limit("seats"),
		Warm: e.warm(), Apart: e.has("join") && !e.toggle("join"),
	})
	return o, err
}

// close stores the runs and gives back the device and the folder.
func (o *opened) close(ctx context.Context) error {
	return errors.Join(o.Close(ctx), o.closeRest())
}

func (o *opened) closeRest() error {
	var err error
	if o.dev != nil {
		err = o.dev.Close()
	}
	return errors.Join(err, o.lock.Release())
}

// measurePeakOption is that of commands whose output has shares of the peak.
var measurePeakOption = option{name: "measure_peak", kind: toggle, local: true, usage: "time a large matrix product first, about a second, so that rates are also reported as shares of it (MFU)"}

// measurePeak measures the device's peak where that is asked for, at a precision. It comes before the engine, whose
// warm-up would take the processors meanwhile.
func measurePeak(ctx context.Context, e env, dev *device.Device, at kernels.Precision) error {
	if !e.has("measure_peak") || !e.toggle("measure_peak") {
		return nil
	}
	peak, err := kernels.MatmulPeak(ctx, dev, at)
	if err == nil {
		e.log.Info("matmul peak measured", "gflops", math.Round(peak/1e9))
	}
	return err
}

// precision returns that of networks, where the command lets one choose.
func (e env) precision() (kernels.Precision, error) {
	if !e.has("precision") {
		return kernels.Float32, nil
	}
	p, err := kernels.ParsePrecision(e.text("precision"))
	if err != nil {
		return "", usagef(e.cmd, "--precision must be float32, tf32 or bfloat16, got %q", e.text("precision"))
	}
	return p, nil
}

// limit returns a limit that serve sets and the other commands leave at its default.
func (e env) limit(name string) int64 {
	if !e.has(name) {
		return 0
	}
	return e.whole(name)
}

// has reports whether the command has a setting of that name.
func (e env) has(name string) bool {
	return slices.ContainsFunc(e.values, func(v value) bool { return v.name == name })
}

// warm lists what serve is to warm up.
func (e env) warm() []string {
	if !e.has("warm") {
		return nil
	}
	return words(e.text("warm"))
}

// address returns a listener's address as --listen takes it.
func address(a net.Addr) string {
	if a.Network() == "unix" {
		return "unix:" + a.String()
	}
	return a.String()
}
