package connect

import (
	"context"
	"math"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/base/suggest"
	"github.com/anisoflight/anisoflight/internal/cli/command"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// DeviceOption chooses what runs the programs.
var DeviceOption = command.Option{
	Name: "device", Local: true,
	Usage: "`backend`: cpu, cuda, go, or a PJRT plugin's path", Otherwise: "the best one found",
	OneOf: []string{"cpu", "cuda", "go"},
}

// MemoryLimitOption bounds what is kept on the device.
var MemoryLimitOption = command.Option{
	Name: "memory_limit", Kind: command.Whole, Local: true,
	Usage:     "`bytes` that each device's buffers and programs may take",
	Otherwise: "what the machine, or the GPU, has to give",
}

// DevicesOption says how many devices there are to work on.
var DevicesOption = command.Option{
	Name: "devices", Local: true,
	Usage: "`which` devices to use: all, how many, or a list of GPUs such as 0,2", Otherwise: "one",
}

// GPUOptions say what of which GPU is used; commands that work for long have them.
var GPUOptions = []command.Option{
	DevicesOption,
	{Name: "device_index", Kind: command.Whole, Local: true, Usage: "`number` of the GPU to use, from 0", Otherwise: "0"},
	{
		Name: "memory_fraction", Kind: command.Number, Local: true,
		Usage: "`share` of the GPU's memory that may be taken", Otherwise: "0.75",
	},
	{Name: "preallocate", Kind: command.Toggle, Local: true, Usage: "take that share at the start, in one piece"},
}

// MeasurePeakOption is that of commands whose output has shares of the peak.
var MeasurePeakOption = command.Option{
	Name: "measure_peak", Kind: command.Toggle, Local: true,
	Usage: "time a large matrix product first, about a second, so that rates are also reported as shares of it (MFU)",
}

// PrecisionOption chooses the arithmetic of networks.
var PrecisionOption = command.Option{
	Name: "precision", Local: true,
	Usage: "`arithmetic` of networks: float32, tf32 or bfloat16", Otherwise: "float32",
	OneOf: api.Precisions,
}

// OpenDevice opens the backend that the settings ask for.
func OpenDevice(e command.Env) (*device.Device, error) {
	cfg := device.Config{Plugin: e.Text("device"), Logger: e.Log}
	if e.Has("devices") {
		cfg.Devices = e.Text("devices")
	}
	if e.Has("device_index") {
		if v := e.Get("memory_fraction"); v.Given && e.Number("memory_fraction") == 0 {
			return nil, command.Usagef(e.Cmd, "--memory-fraction is a share above 0")
		}
		cfg.Index, cfg.Preallocate, cfg.MemoryFraction = int(e.Whole("device_index")), e.Toggle("preallocate"),
			e.Number("memory_fraction")
	}
	if e.Has("memory_limit") {
		cfg.MemoryLimit = e.Whole("memory_limit")
	}
	return device.Open(cfg)
}

// measurePeak measures the device's peak where that is asked for, at a precision. It comes before the engine, whose
// warm-up would take the processors meanwhile.
func measurePeak(ctx context.Context, e command.Env, dev *device.Device, at kernels.Precision) error {
	if !e.Has("measure_peak") || !e.Toggle("measure_peak") {
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
	if !e.Has("precision") {
		return kernels.Float32, nil
	}
	p, err := kernels.ParsePrecision(e.Text("precision"))
	if err != nil {
		return "", command.Usagef(e.Cmd, "--precision %s", suggest.OneOf(e.Text("precision"), kernels.Precisions))
	}
	return p, nil
}
