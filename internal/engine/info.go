package engine

import (
	"context"
	"encoding/json"
	"runtime/metrics"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/process"
)

// serverInfo tells how the server is.
func (e *Engine) serverInfo(context.Context, api.Empty) (any, error) {
	details, err := json.Marshal(e.dev.Report())
	if err != nil {
		return nil, err
	}
	stats := e.dev.Stats()
	inUse, _ := process.Resident()
	e.mu.RLock()
	defer e.mu.RUnlock()
	info := api.ServerInfo{
		Version: e.cfg.Version, Device: api.Device{Name: e.dev.Name(), Details: details},
		Precision: string(e.cfg.Precision),
		UptimeS:   time.Since(e.start).Seconds(), ActiveRequests: e.active.Load(), Models: len(e.models),
		Compiled: stats.Compiled, FromDisk: stats.FromDisk, CompileS: stats.CompileSeconds,
		TrainSteps: e.steps.Load(), DeviceBytes: stats.BufferBytes,
		HeapBytes: liveHeap(), ResidentBytes: uint64(inUse),
	}
	info.Warming = e.warming.snapshot()
	info.Waiting, info.Turns = e.turns.load()
	info.Waiting += e.joint.waiting()
	info.Joined = e.Joined()
	info.Work, info.PeakGFLOPS = e.work()
	for _, r := range e.runs {
		if r.info().State == running {
			info.RunningRuns++
		}
	}
	return info, nil
}

// work gives what each kind of program has done, and the peak, 0 before it is measured.
func (e *Engine) work() (kinds map[string]api.Work, peakGFLOPS float64) {
	peak, known := e.dev.Peak()
	kinds = map[string]api.Work{}
	for kind, w := range e.dev.Work() {
		out := api.Work{Runs: w.Runs, GFLOP: float64(w.FLOPs) / 1e9, Seconds: w.Seconds}
		if w.Seconds > 0 {
			out.GFLOPS = out.GFLOP / w.Seconds
		}
		if known {
			out.MFU = out.GFLOPS * 1e9 / peak
		}
		kinds[kind] = out
	}
	return kinds, peak / 1e9
}

// liveHeap gives the bytes of Go objects.
func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
