package engine

import (
	"context"
	"encoding/json"
	"runtime/metrics"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/runs"
	"github.com/anisoflight/anisoflight/internal/process"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// serverInfo says how the server is. It does not open the device.
func (e *Engine) serverInfo(context.Context, api.Empty) (api.ServerInfo, error) {
	inUse, _ := process.Resident()
	info := api.ServerInfo{
		Version: e.cfg.Version, Precision: string(e.cfg.Precision),
		UptimeS: time.Since(e.start).Seconds(), ActiveRequests: e.active.Load(), Models: len(e.catalog.Models()),
		TrainSteps: e.runs.Steps(), HeapBytes: liveHeap(), ResidentBytes: uint64(inUse), Work: map[string]api.Work{},
	}
	info.Waiting, info.Turns = e.batcher.Load()
	info.Waiting += e.batcher.Waiting()
	info.Joined = e.batcher.Joined()
	for _, r := range e.runs.All() {
		if r.Info().State == runs.Running {
			info.RunningRuns++
		}
	}
	if dev := e.device.opened(); dev != nil {
		if err := describeDevice(&info, dev); err != nil {
			return info, err
		}
	}
	return info, nil
}

func describeDevice(info *api.ServerInfo, dev *device.Device) error {
	details, err := json.Marshal(dev.Report())
	if err != nil {
		return err
	}
	stats := dev.Stats()
	info.Device = api.Device{Name: dev.Name(), Details: details}
	info.Compiled, info.FromDisk, info.CompileS = stats.Compiled, stats.FromDisk, stats.CompileSeconds
	for _, d := range dev.Peers() {
		bytes := api.DeviceBytes{Buffers: d.Stats().BufferBytes}
		bytes.Available, _ = d.Available()
		info.DeviceBytes += bytes.Buffers
		info.BytesByDevice = append(info.BytesByDevice, bytes)
	}
	peak, measured := dev.Peak()
	info.PeakGFLOPS = peak / 1e9
	for kind, w := range dev.Work() {
		out := api.Work{Runs: w.Runs, GFLOP: float64(w.FLOPs) / 1e9, Seconds: w.Seconds}
		if w.Seconds > 0 {
			out.GFLOPS = out.GFLOP / w.Seconds
		}
		if measured {
			out.MFU = out.GFLOPS * 1e9 / peak
		}
		info.Work[kind] = out
	}
	return nil
}

func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
