package flight

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/stats"

	"github.com/anisoflight/anisoflight/flight/api"
)

// traffic is gRPC's stats handler. It numbers connections, to distinguish callers without a name, and counts the bytes
// of each call.
type traffic struct{ last, open atomic.Int64 }

type connectionKey struct{}

// TagConn implements stats.Handler.
func (t *traffic) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	return context.WithValue(ctx, connectionKey{}, "connection "+strconv.FormatInt(t.last.Add(1), 10))
}

// HandleConn implements stats.Handler.
func (t *traffic) HandleConn(_ context.Context, s stats.ConnStats) {
	switch s.(type) {
	case *stats.ConnBegin:
		t.open.Add(1)
	case *stats.ConnEnd:
		t.open.Add(-1)
	}
}

// TagRPC implements stats.Handler.
func (t *traffic) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements stats.Handler.
func (t *traffic) HandleRPC(ctx context.Context, s stats.RPCStats) {
	c := callOf(ctx)
	if c == nil {
		return
	}
	switch s := s.(type) {
	case *stats.InPayload:
		c.in.Add(int64(s.WireLength))
	case *stats.OutPayload:
		c.out.Add(int64(s.WireLength))
	}
}

// meters are the server's metrics of calls for Prometheus. A call is counted when it ends.
type meters struct {
	calls   *prometheus.CounterVec   // by method, operation and code
	seconds *prometheus.HistogramVec // by method and operation
	rows    *prometheus.CounterVec   // by operation
	bytes   *prometheus.CounterVec   // by operation and direction
}

// newMeters returns the meters of a server. If registry is not nil, it registers them and the server's state there.
func newMeters(s *Server, registry prometheus.Registerer) *meters {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "anisoflight_" + name, Help: help}, labels)
	}
	m := &meters{
		calls: counter("calls_total", "Calls that have ended, by the code of the contract, OK if all went well.",
			"method", "operation", "code"),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "anisoflight_call_seconds", Help: "Time from a call's beginning to its end.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 10),
		}, []string{"method", "operation"}),
		rows:  counter("rows_total", "Rows given by operations, or stored by uploads.", "operation"),
		bytes: counter("bytes_total", "Bytes of messages on the wire.", "operation", "direction"),
	}
	if registry != nil {
		registry.MustRegister(m.calls, m.seconds, m.rows, m.bytes, &state{s})
	}
	return m
}

// count counts a call that has ended with err. Unknown methods and operations count as "other".
func (m *meters) count(c *call, err error, took time.Duration) {
	op, code := c.op, "OK"
	method, isFlight := strings.CutPrefix(c.method, flightService)
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
	m.bytes.WithLabelValues(op, "in").Add(float64(c.in.Load()))
	m.bytes.WithLabelValues(op, "out").Add(float64(c.out.Load()))
}

// methods lists the calls of Flight.
var methods = []string{
	"Handshake", "ListFlights", "GetFlightInfo", "PollFlightInfo", "GetSchema", "DoGet", "DoPut", "DoExchange", "DoAction",
	"ListActions",
}

// state collects the metrics of the server's state and of its engine's ServerInfo.
type state struct{ *Server }

// Describe implements prometheus.Collector. Collect describes the metrics.
func (s *state) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector. Prometheus calls it in its own goroutine, so it recovers panics.
func (s *state) Collect(out chan<- prometheus.Metric) {
	emit := func(kind prometheus.ValueType) func(string, string, float64, ...string) {
		return func(name, help string, value float64, label ...string) {
			var names, values []string
			if len(label) == 2 {
				names, values = label[:1], label[1:]
			}
			desc := prometheus.NewDesc("anisoflight_"+name, help, names, nil)
			out <- prometheus.MustNewConstMetric(desc, kind, value, values...)
		}
	}
	gauge, counter := emit(prometheus.GaugeValue), emit(prometheus.CounterValue)
	_ = recovered(s.log, func() error {
		s.mu.Lock()
		draining := 0.0
		if s.draining {
			draining = 1
		}
		s.mu.Unlock()
		gauge("calls_active", "Active calls.", float64(s.activeCalls()))
		gauge("connections", "Open connections.", float64(s.traffic.open.Load()))
		gauge("draining", "1 while the server shuts down.", draining)
		if info, ok := s.info(); ok {
			collect(info, gauge, counter)
		}
		return nil
	})
}

// info returns the engine's ServerInfo.
func (s *state) info() (info api.ServerInfo, ok bool) {
	call, err := s.table.Call(api.ByAction, openAction, nil)
	if err != nil {
		return info, false
	}
	reply, err := s.engine.Action(context.Background(), call, nil)
	info, ok = reply.(api.ServerInfo)
	return info, ok && err == nil
}

// collect emits the metrics of an engine's ServerInfo.
func collect(i api.ServerInfo, gauge, counter func(name, help string, value float64, label ...string)) {
	gauge("requests_active", "Active operations.", float64(i.ActiveRequests))
	gauge("device_waiting", "Requests and runs that wait for a slot of the device.", float64(i.Waiting))
	counter("device_turns_total", "Slots of the device given: evaluations of networks and training steps.",
		float64(i.Turns))
	counter("device_joined_total", "Evaluations made in the batch of another request for the same network.",
		float64(i.Joined))
	gauge("device_bytes", "Bytes in buffers on the device.", float64(i.DeviceBytes))
	for k, device := range i.BytesByDevice {
		gauge("device_buffer_bytes", "Bytes in buffers on each device.", float64(device.Buffers), "device", strconv.Itoa(k))
	}
	counter("train_steps_total", "Training steps taken.", float64(i.TrainSteps))
	counter("compiled_total", "Programs compiled, or read from the cache on disk.", float64(i.Compiled))
	counter("programs_from_disk_total", "Of the programs compiled, those read from the cache on disk.",
		float64(i.FromDisk))
	counter("compile_seconds_total", "Time spent in compiling.", i.CompileS)
	gauge("matmul_peak_flops",
		"FLOP/s of a large matrix product on the device in the server's precision; 0 before it is measured.",
		i.PeakGFLOPS*1e9)
	gauge("models", "Models served.", float64(i.Models))
	gauge("runs_running", "Runs that train in the background.", float64(i.RunningRuns))
	for kind, work := range i.Work {
		counter("program_runs_total", "Runs of compiled programs.", float64(work.Runs), "kind", kind)
		counter("program_flops_total", "Floating-point operations of convolutions and matrix products.", work.GFLOP*1e9,
			"kind", kind)
		counter("program_seconds_total", "Time of all runs; simultaneous runs count each.", work.Seconds, "kind", kind)
	}
}
