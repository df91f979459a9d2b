package flightbench

import (
	"math"
	"testing"
)

// TestEveryMeasureIsTaken runs the whole bench on little: that all rows arrive is checked by the clients themselves.
func TestEveryMeasureIsTaken(t *testing.T) {
	rounds := 0
	r, err := Run(t.Context(), Config{Bytes: 3 * batchBytes, Rounds: 2, Latencies: 2, Progress: func(int) { rounds++ }})
	if err != nil {
		t.Fatal(err)
	}
	if rounds != 2 || r.Rounds != 2 || r.Bytes != 3*batchBytes || len(r.Measures) != len(operations) {
		t.Errorf("%d rounds, report %+v", rounds, r)
	}
	for _, m := range r.Measures {
		for _, s := range []Stat{m.Rate, m.Stock, m.OfTCP, m.OfStock, m.Latency, m.StockLatency, r.TCP, r.Memcpy} {
			if !(s.Low > 0 && s.Low <= s.Median && s.Median <= s.High) || math.IsInf(s.High, 0) {
				t.Errorf("%s by %s: %+v", m.Operation, m.Client, s)
			}
		}
	}
}

func TestAMissingInterpreterIsAnError(t *testing.T) {
	if _, err := Run(t.Context(), Config{Bytes: batchBytes, Rounds: 1, Python: "no-such-python"}); err == nil {
		t.Error("no error")
	}
}

func TestSummary(t *testing.T) {
	got := summary([]float64{4, 1, 3, 2, 5})
	if want := (Stat{Low: 2, Median: 3, High: 4}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := summary([]float64{1, 2}); got.Median != 1.5 || got.Low != 1.25 {
		t.Errorf("%+v", got)
	}
	if text := got.Text("%.1f"); text != "3.0 (2.0–4.0)" {
		t.Error(text)
	}
}
