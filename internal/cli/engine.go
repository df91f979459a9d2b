package cli

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
)

var dataOption = option{name: "data", def: "data", usage: "`folder` of models, schedules, bases, datasets and runs"}

// engineKey is that of a context's engine.
type engineKey struct{}

var precisionOption = option{name: "precision", usage: "`arithmetic` of networks: float32 (default), tf32 or bfloat16"}

// withEngine opens the data folder in this process for the length of f. Under a context
// that has an engine, as the commands of a recipe's stages run, it is that one.
func withEngine(ctx context.Context, e env, f func(*engine.Engine) error) (err error) {
	if eng, ok := ctx.Value(engineKey{}).(*engine.Engine); ok {
		return f(eng)
	}
	dev, err := openDevice(e)
	if err != nil {
		return err
	}
	defer dev.Close()
	precision, err := e.precision()
	if err != nil {
		return err
	}
	if err := measurePeak(ctx, e, dev, precision); err != nil {
		return err
	}
	eng, err := engine.Open(ctx, engine.Config{
		Precision: precision,
		Dir:       e.text("data"), Version: Version(), Logger: e.log,
		MaxBytes: e.limit("max_bytes"), MaxUploadBytes: e.limit("max_upload_bytes"), MaxRequests: e.limit("max_requests"), Seats: e.limit("seats"),
		Warm: e.warm(), Apart: e.has("join") && !e.toggle("join"),
	}, dev)
	if err != nil {
		return err
	}
	defer func() {
		// The runs' states are stored even after an interrupt.
		err = errors.Join(err, eng.Close(context.WithoutCancel(ctx)))
	}()
	return f(eng)
}

// measurePeakOption is that of commands whose output has shares of the peak.
var measurePeakOption = option{name: "measure_peak", kind: toggle, usage: "time a large matrix product first, about a second, so that rates are told as shares of it (MFU), too"}

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

// precision gives that of networks, where the command lets one choose.
func (e env) precision() (kernels.Precision, error) {
	if !e.has("precision") {
		return kernels.Float32, nil
	}
	p, err := kernels.ParsePrecision(e.text("precision"))
	if err != nil {
		return "", usagef(e.cmd, "--precision is %q; choose float32, tf32 or bfloat16", e.text("precision"))
	}
	return p, nil
}

// limit gives a limit that serve sets and the other commands leave at its default.
func (e env) limit(name string) int64 {
	if !e.has(name) {
		return 0
	}
	return e.whole(name)
}

// has tells whether the command has a setting of that name.
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

// address says a listener's address as --listen takes it.
func address(a net.Addr) string {
	if a.Network() == "unix" {
		return "unix:" + a.String()
	}
	return a.String()
}

// act does an action and decodes its reply into result, which may be nil.
func act(ctx context.Context, eng *engine.Engine, name string, fields map[string]any, progress func(api.Meta), result any) error {
	body, err := encode(fields)
	if err != nil {
		return err
	}
	call, err := eng.Operations().Call(api.ByAction, name, body)
	if err != nil {
		return err
	}
	reply, err := eng.Action(ctx, call, progress)
	if err != nil {
		return err
	}
	if result == nil {
		return nil
	}
	raw, err := json.Marshal(reply)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, result)
}

// perform does an action that may take its time: it opens the data folder and shows the progress.
func perform(ctx context.Context, e env, name string, fields map[string]any, doing string, result any) error {
	return withEngine(ctx, e, func(eng *engine.Engine) error {
		p := newProgress(e.err, e.log, doing)
		defer p.close()
		return act(ctx, eng, name, fields, func(m api.Meta) { showMeta(p, m) }, result)
	})
}

// stream runs an operation and hands every event to emit.
func stream(ctx context.Context, eng *engine.Engine, op string, fields map[string]any, emit func(api.Schema, api.Event) error) error {
	body, err := encode(fields)
	if err != nil {
		return err
	}
	call, err := eng.Operations().Call(api.ByGet, op, body)
	if err != nil {
		return err
	}
	job, err := eng.Prepare(ctx, call)
	if err != nil {
		return err
	}
	return job.Run(ctx, func(ev api.Event) error { return emit(job.Schema, ev) })
}

// isCode reports whether an error of the engine has the code.
func isCode(err error, code api.Code) bool {
	var e *api.Error
	return errors.As(err, &e) && e.Code == code
}
