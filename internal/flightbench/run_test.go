package flightbench

import (
	"math"
	"testing"

	"github.com/anisoflight/anisoflight/internal/stat"
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
		for _, s := range []stat.Stat{m.Rate, m.Stock, m.OfTCP, m.OfStock, m.Latency, m.StockLatency, r.TCP, r.Memcpy} {
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
