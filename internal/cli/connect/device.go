package connect

import (
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

// DeviceOption chooses what runs the programs.
var DeviceOption = command.Option{
	Name:  "device",
	Usage: "`backend`: cpu, cuda, go, or a PJRT plugin's path", Otherwise: "the best one found",
	OneOf: []string{"cpu", "cuda", "go"},
}

// MemoryLimitOption bounds what is kept on the device.
var MemoryLimitOption = command.Option{
	Name: "memory_limit", Kind: command.Whole,
	Usage:     "`bytes` that each device's buffers and programs may take",
	Otherwise: "what the machine, or the GPU, has to give",
}

// DevicesOption says how many devices there are to work on.
var DevicesOption = command.Option{
	Name:  "devices",
	Usage: "`number` of devices to use, or all", Otherwise: "1",
}

// GPUOptions say which GPUs are used, and how much of them; commands that work for long have them.
var GPUOptions = []command.Option{
	DevicesOption,
	{
		Name: "memory_fraction", Kind: command.Number,
		Usage: "`share` of the GPU's memory that may be taken", Otherwise: "0.75",
	},
}

// MeasurePeakOption is that of commands whose output has shares of the peak.
var MeasurePeakOption = command.Option{
	Name: "measure_peak", Kind: command.Toggle,
	Usage: "time a large matrix product first, about a second, so that rates are also reported as shares of it (MFU)",
}

// PrecisionOption chooses the arithmetic of networks.
var PrecisionOption = command.Option{
	Name:  "precision",
	Usage: "`arithmetic` of networks: float32, tf32 or bfloat16", Otherwise: "float32",
	OneOf: api.Precisions,
}

// OpenDevice opens the backend that the settings ask for.
func OpenDevice(e command.Env) (*device.Device, error) {
	if e.Given("memory_fraction") && e.Number("memory_fraction") == 0 {
		return nil, command.Usagef(e.Cmd, "--memory-fraction is a share above 0")
	}
	return device.Open(device.Config{
		Plugin: e.Text("device"), Logger: e.Log, Devices: e.Text("devices"),
		MemoryFraction: e.Number("memory_fraction"), MemoryLimit: e.Whole("memory_limit"),
	})
}

// measurePeak measures the device's peak at a precision if that is asked for. It comes before the engine, whose runs
// would take the processors meanwhile.
func measurePeak(ctx context.Context, e command.Env, dev *device.Device, at kernels.Precision) error {
	if !e.Toggle("measure_peak") {
		return nil
	}
	peak, err := kernels.MatmulPeak(ctx, dev, at)
	if err == nil {
		e.Log.Info("matmul peak measured", "gflops", math.Round(peak/1e9))
	}
	return err
}

// precision returns that of networks, where the command lets one choose.
func precision(e command.Env) (kernels.Precision, error) {
	if e.Text("precision") == "" {
		return kernels.Float32, nil
	}
	p, err := kernels.ParsePrecision(e.Text("precision"))
	if err != nil {
		return "", command.Usagef(e.Cmd, "--precision %s", suggest.OneOf(e.Text("precision"), kernels.Precisions))
	}
	return p, nil
}

// Engine is the engine of this process, with its device and the folder's lock.
type Engine struct {
	*engine.Engine
	dev  *device.Device
	lock *folderlock.Lock
}

// OpenEngine opens the data folder whose lock is held. The lock is released with the engine, or at once if that fails.
// The world may be nil: see Among.
func OpenEngine(ctx context.Context, e command.Env, lock *folderlock.Lock, w *processes.World) (_ *Engine, err error) {
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
	if e.Text("listen") != "" || e.Toggle("measure_peak") { // others open it where they need it
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
		MaxBytes: e.Whole("max_bytes"), MaxUploadBytes: e.Whole("max_upload_bytes"), MaxRequests: e.Whole("max_requests"),
		Slots: e.Whole("slots"),
		World: w,
		Apart: e.Value("dynamic_batching") == false,
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
