package flight

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// TestMetrics: calls by method, operation and code; rows and bytes; names that clients make up make no new series.
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
	eventually(t, "end", time.Second, func() bool { return s.underWay() == 0 })
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
`
	if err := testutil.GatherAndCompare(at, strings.NewReader(want), "anisoflight_calls_total", "anisoflight_rows_total", "anisoflight_connections"); err != nil {
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
