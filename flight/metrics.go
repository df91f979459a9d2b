package flight

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/anisoflight/anisoflight/flight/api"
)

// meters count what the server does, for Prometheus. Calls are counted when they end.
type meters struct {
	calls   *prometheus.CounterVec   // by method, operation and code
	seconds *prometheus.HistogramVec // by method and operation
	rows    *prometheus.CounterVec   // by operation
	bytes   *prometheus.CounterVec   // by operation and direction
}

// newMeters makes the meters of a server and registers them, unless at is nil, with what the engine tells of itself.
func newMeters(s *Server, at prometheus.Registerer) *meters {
	m := &meters{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "anisoflight_calls_total",
			Help: "Calls that have ended, by the code of the contract, OK if all went well.",
		}, []string{"method", "operation", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "anisoflight_call_seconds",
			Help: "Time from a call's beginning to its end.", Buckets: prometheus.ExponentialBuckets(0.001, 4, 10),
		}, []string{"method", "operation"}),
		rows: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "anisoflight_rows_total",
			Help: "Rows given by operations, or stored by uploads.",
		}, []string{"operation"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "anisoflight_bytes_total",
			Help: "Bytes of messages on the wire.",
		}, []string{"operation", "direction"}),
	}
	if at == nil {
		return m
	}
	gauge := func(name, help string, f func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, f)
	}
	at.MustRegister(m.calls, m.seconds, m.rows, m.bytes, &engineMeters{s.engine, s.log},
		gauge("anisoflight_calls_active", "Calls under way.", func() float64 { return float64(s.underWay()) }),
		gauge("anisoflight_connections", "Open connections.", func() float64 { return float64(s.traffic.open.Load()) }),
		gauge("anisoflight_draining", "1 while the server shuts down.", func() float64 {
			if s.draining.Load() {
				return 1
			}
			return 0
		}))
	return m
}

// count counts a call that has ended with err. Names that clients make up are not counted apart.
func (m *meters) count(c *call, err error, took time.Duration) {
	method, isFlight := strings.CutPrefix(c.method, flightService)
	op, code := c.op, "OK"
	if !isFlight || !slices.Contains(methods, method) {
		method = "other"
	}
	if op != "" && c.server.table.Named(op) == nil {
		op = "other"
	}
	if err != nil {
		code = string(api.ErrorOf(err).Code)
	}
	m.calls.WithLabelValues(method, op, code).Inc()
	m.seconds.WithLabelValues(method, op).Observe(took.Seconds())
	if rows := c.rows.Load(); rows > 0 {
		m.rows.WithLabelValues(op).Add(float64(rows))
	}
	in, out := bytesOf(c.ctx)
	m.bytes.WithLabelValues(op, "in").Add(float64(in))
	m.bytes.WithLabelValues(op, "out").Add(float64(out))
}

// engineMeters tell what the engine says of itself when Prometheus asks.
type engineMeters struct {
	engine Engine
	log    *slog.Logger
}

// engineValues are the metrics of an engine's ServerInfo.
var engineValues = []struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(api.ServerInfo) float64
}{
	{
		describe("requests_active", "Operations under way."), prometheus.GaugeValue,
		func(i api.ServerInfo) float64 { return float64(i.ActiveRequests) },
	},
	{
		describe("device_waiting", "Requests and runs that wait for a slot of the device."), prometheus.GaugeValue,
		func(i api.ServerInfo) float64 { return float64(i.Waiting) },
	},
	{
		describe("device_turns_total", "Slots of the device given: evaluations of networks and training steps."),
		prometheus.CounterValue, func(i api.ServerInfo) float64 { return float64(i.Turns) },
	},
	{
		describe("device_joined_total", "Evaluations that were made in the batch of another request for the same network."),
		prometheus.CounterValue, func(i api.ServerInfo) float64 { return float64(i.Joined) },
	},
	{
		describe("device_bytes", "Bytes in buffers on the device."), prometheus.GaugeValue,
		func(i api.ServerInfo) float64 { return float64(i.DeviceBytes) },
	},
	{
		describe("train_steps_total", "Training steps taken."), prometheus.CounterValue,
		func(i api.ServerInfo) float64 { return float64(i.TrainSteps) },
	},
	{
		describe("compiled_total", "Programs compiled, or read from the cache on disk."), prometheus.CounterValue,
		func(i api.ServerInfo) float64 { return float64(i.Compiled) },
	},
	{
		describe("programs_from_disk_total", "Of the programs compiled, those read from the cache on disk."),
		prometheus.CounterValue, func(i api.ServerInfo) float64 { return float64(i.FromDisk) },
	},
	{
		describe("warm_up_pending", "Batches of the configured models for which nothing has been compiled ahead yet."),
		prometheus.GaugeValue, func(i api.ServerInfo) float64 {
			if i.Warming == nil {
				return 0
			}
			return float64(i.Warming.Total - i.Warming.Done)
		},
	},
	{
		describe("compile_seconds_total", "Time spent in compiling."), prometheus.CounterValue,
		func(i api.ServerInfo) float64 { return i.CompileS },
	},
	{
		describe("matmul_peak_flops",
			"FLOP/s of a large matrix product on the device in the server's precision; 0 before it is measured."),
		prometheus.GaugeValue,
		func(i api.ServerInfo) float64 { return i.PeakGFLOPS * 1e9 },
	},
	{
		describe("models", "Models served."), prometheus.GaugeValue,
		func(i api.ServerInfo) float64 { return float64(i.Models) },
	},
	{
		describe("runs_running", "Runs that train in the background."), prometheus.GaugeValue,
		func(i api.ServerInfo) float64 { return float64(i.RunningRuns) },
	},
}

// deviceBytes has one metric for each of several devices.
var deviceBytes = describe("device_buffer_bytes", "Bytes in buffers on each device.", "device")

// workValues are the metrics of each kind of program that the device runs.
var workValues = []struct {
	desc  *prometheus.Desc
	value func(api.Work) float64
}{
	{
		describe("program_runs_total", "Runs of compiled programs.", "kind"),
		func(w api.Work) float64 { return float64(w.Runs) },
	},
	{
		describe("program_flops_total", "Floating-point operations of convolutions and matrix products.", "kind"),
		func(w api.Work) float64 { return w.GFLOP * 1e9 },
	},
	{
		describe("program_seconds_total", "Time that runs took; runs side by side count each.", "kind"),
		func(w api.Work) float64 { return w.Seconds },
	},
}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("anisoflight_"+name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (e *engineMeters) Describe(out chan<- *prometheus.Desc) {
	for _, v := range engineValues {
		out <- v.desc
	}
	for _, v := range workValues {
		out <- v.desc
	}
	out <- deviceBytes
}

// Collect implements prometheus.Collector. Prometheus calls it in a goroutine of its own.
func (e *engineMeters) Collect(out chan<- prometheus.Metric) {
	_ = recovered(e.log, func() error {
		e.collect(out)
		return nil
	})
}

func (e *engineMeters) collect(out chan<- prometheus.Metric) {
	call, err := e.engine.Operations().Call(api.ByAction, openAction, nil)
	if err != nil {
		return
	}
	reply, err := e.engine.Action(context.Background(), call, nil)
	info, ok := reply.(api.ServerInfo)
	if err != nil || !ok {
		return
	}
	for _, v := range engineValues {
		out <- prometheus.MustNewConstMetric(v.desc, v.kind, v.value(info))
	}
	for k, of := range info.BytesByDevice {
		out <- prometheus.MustNewConstMetric(deviceBytes, prometheus.GaugeValue, float64(of.Buffers), strconv.Itoa(k))
	}
	for kind, work := range info.Work {
		for _, v := range workValues {
			out <- prometheus.MustNewConstMetric(v.desc, prometheus.CounterValue, v.value(work), kind)
		}
	}
}
