package connect

import (
	"cmp"
	"context"
	"errors"
	"math"
	"os/signal"
	"syscall"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/base/folderlock"
	"github.com/anisoflight/anisoflight/internal/base/suggest"
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/internal/engine"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/processes"
)

// DeviceOption selects the backend.
var DeviceOption = command.Option{
	Name:  "device",
	Usage: "`backend`: cpu, cuda, go, or a PJRT plugin's path", Otherwise: "the best one found",
	OneOf: []string{"cpu", "cuda", "go"},
}

// MemoryLimitOption bounds the memory of each device.
var MemoryLimitOption = command.Option{
	Name: "memory_limit", Kind: command.Whole,
	Usage:     "`bytes` that each device's buffers and programs may take",
	Otherwise: "what the machine or the GPU has", Bounds: `min:"0"`,
}

// GPUOptions set how many devices are used, and how much of a GPU's memory.
var GPUOptions = []command.Option{
	{Name: "devices", Usage: "`number` of devices to use, or all", Otherwise: "1"},
	{
		Name: "memory_fraction", Kind: command.Number,
		Usage: "`share` of the GPU's memory that may be taken", Otherwise: "0.75",
		Bounds: `default:"0.75" above:"0" max:"1"`,
	},
}

// MeasurePeakOption has the device's peak rate measured.
var MeasurePeakOption = command.Option{
	Name: "measure_peak", Kind: command.Toggle,
	Usage: "first time a large matrix product, about a second, so that rates are also reported as shares of it (MFU)",
}

// PrecisionOption selects the arithmetic of networks.
var PrecisionOption = command.Option{
	Name:  "precision",
	Usage: "`arithmetic` of networks: float32, tf32 or bfloat16", Otherwise: "float32",
	OneOf: api.Precisions,
}

// OpenDevice opens the backend that the settings select.
func OpenDevice(e command.Env) (*device.Device, error) {
	return device.Open(device.Config{
		Plugin: e.Text("device"), Logger: e.Log, Devices: e.Text("devices"),
		MemoryFraction: e.Number("memory_fraction"), MemoryLimit: e.Whole("memory_limit"),
	})
}

// precision returns the setting of PrecisionOption, float32 if it is not given.
func precision(e command.Env) (kernels.Precision, error) {
	text := cmp.Or(e.Text("precision"), string(kernels.Float32))
	p, err := kernels.ParsePrecision(text)
	if err != nil {
		return "", command.Usagef(e.Cmd, "--precision %s", suggest.OneOf(text, kernels.Precisions))
	}
	return p, nil
}

// Engine is the engine of this process, with its device and the folder's lock.
type Engine struct {
	*engine.Engine
	dev  *device.Device
	lock *folderlock.Lock
}

// OpenEngine opens the data folder whose lock is held. The lock is released with the engine, or at once on an error.
// The world may be nil: see [WithServerIn].
func OpenEngine(ctx context.Context, e command.Env, lock *folderlock.Lock, w *processes.World) (_ *Engine, err error) {
	// If the reader of the log or the output ends first, writes fail, but the process goes on and stores its runs.
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
	if e.Text("listen") != "" || e.Toggle("measure_peak") { // else the engine opens the device when it needs one
		if o.dev, err = OpenDevice(e); err != nil {
			return nil, err
		}
	}
	if e.Toggle("measure_peak") { // before the engine's runs take the processors
		peak, err := kernels.MatmulPeak(ctx, o.dev, at)
		if err != nil {
			return nil, err
		}
		e.Log.Info("matmul peak measured", "gflops", math.Round(peak/1e9))
	}
	o.Engine, err = engine.Open(ctx, engine.Config{
		Device: o.dev, OpenDevice: func() (*device.Device, error) { return OpenDevice(e) }, Precision: at,
		Dir: e.Text("data"), Version: command.Version(), Logger: e.Log,
		MaxBytes: e.Whole("max_bytes"), MaxUploadBytes: e.Whole("max_upload_bytes"), MaxRequests: e.Whole("max_requests"),
		Slots: e.Whole("slots"),
		World: w,
		Apart: e.Value("dynamic_batching") == false,
	})
	return o, err
}

// Release stores the runs and releases the device and the folder.
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
