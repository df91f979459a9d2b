package flight

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/anisoflight/anisoflight/flight/api"
)

// TestMetrics: calls by method, operation and code; rows and bytes. Unknown names make no new series.
func TestMetrics(t *testing.T) {
	at := prometheus.NewRegistry()
	s := serve(t, Config{Metrics: at})
	if r := s.get(t.Context(), t, `{"op":"Sample","rows":12}`); r.err != nil {
		t.Fatal(r.err)
	}
	_ = s.get(t.Context(), t, `{"op":"Sample","rows":12,"fail":"busy"}`)
	for _, name := range []string{"ListModels", "made-up-1", "made-up-2"} {
		_ = s.doAction(t.Context(), name)
	}
	eventually(t, "end", time.Second, func() bool { return s.activeCalls() == 0 })
	want := `
# HELP anisoflight_calls_total Calls that have ended, by the code of the contract, OK if all went well.
# TYPE anisoflight_calls_total counter
anisoflight_calls_total{code="BUSY",method="DoGet",operation="Sample"} 1
anisoflight_calls_total{code="OK",method="DoAction",operation="ListModels"} 1
anisoflight_calls_total{code="OK",method="DoGet",operation="Sample"} 1
anisoflight_calls_total{code="OP_NOT_FOUND",method="DoAction",operation="other"} 2
# HELP anisoflight_rows_total Rows given by operations, or stored by uploads.
# TYPE anisoflight_rows_total counter
anisoflight_rows_total{operation="Sample"} 16
# HELP anisoflight_connections Open connections.
# TYPE anisoflight_connections gauge
anisoflight_connections 1
# HELP anisoflight_calls_active Active calls.
# TYPE anisoflight_calls_active gauge
anisoflight_calls_active 0
`
	if err := testutil.GatherAndCompare(at, strings.NewReader(want), "anisoflight_calls_total", "anisoflight_rows_total",
		"anisoflight_connections", "anisoflight_calls_active"); err != nil {
		t.Error(err)
	}
	const row = 8 + 4*12 + 8*2
	if out := testutil.ToFloat64(s.meters.bytes.WithLabelValues("Sample", "out")); out < 16*row || out > 1<<20 {
		t.Errorf("%g bytes out for 16 rows of %d", out, row)
	}
	if n, err := testutil.GatherAndCount(at, "anisoflight_call_seconds"); err != nil || n != 3 {
		t.Errorf("%d series of times, %v", n, err)
	}
}

// informed is an engine that only has a ServerInfo.
type informed struct {
	Engine
	info api.ServerInfo
}

func (e informed) Action(context.Context, api.Call, func(api.Meta)) (any, error) {
	return e.info, nil
}

func (informed) Operations() api.Table { return api.Operations() }

// TestMetricsOfWork: metrics of the engine's programs, by kind.
func TestMetricsOfWork(t *testing.T) {
	at := &state{New(informed{info: api.ServerInfo{PeakGFLOPS: 50, Work: map[string]api.Work{
		"step": {Runs: 3, GFLOP: 6, Seconds: 0.5}, "evaluate": {Runs: 1, GFLOP: 1, Seconds: 0.25},
	}}}, Config{})}
	want := `
# HELP anisoflight_matmul_peak_flops FLOP/s of a large matrix product on the device in the server's precision; 0 before it is measured.
# TYPE anisoflight_matmul_peak_flops gauge
anisoflight_matmul_peak_flops 5e+10
# HELP anisoflight_program_flops_total Floating-point operations of convolutions and matrix products.
# TYPE anisoflight_program_flops_total counter
anisoflight_program_flops_total{kind="evaluate"} 1e+09
anisoflight_program_flops_total{kind="step"} 6e+09
# HELP anisoflight_program_seconds_total Time of all runs; simultaneous runs count each.
# TYPE anisoflight_program_seconds_total counter
anisoflight_program_seconds_total{kind="evaluate"} 0.25
anisoflight_program_seconds_total{kind="step"} 0.5
`
	names := []string{
		"anisoflight_matmul_peak_flops", "anisoflight_program_flops_total",
		"anisoflight_program_seconds_total",
	}
	if err := testutil.CollectAndCompare(at, strings.NewReader(want), names...); err != nil {
		t.Error(err)
	}
}
