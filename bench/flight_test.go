package bench

import (
	"math"
	"testing"
)

// TestFlight takes every measure on little data: that all rows arrive is checked by the clients themselves.
func TestFlight(t *testing.T) {
	rounds := 0
	b := &flightBench{batches: 3, rounds: 2, latencies: 2}
	r, err := b.measure(t.Context(), func(int, int) { rounds++ })
	if err != nil {
		t.Fatal(err)
	}
	if rounds != 2 || r.Rounds != 2 || r.Bytes != 3*batchBytes || len(r.Measures) != len(flightOperations) {
		t.Errorf("%d rounds, report %+v", rounds, r)
	}
	for _, m := range r.Measures {
		for _, q := range []quartiles{m.Rate, m.Stock, m.OfTCP, m.OfStock, m.Latency, m.StockLatency, r.TCP} {
			if !(q.Low > 0 && q.Low <= q.Median && q.Median <= q.High) || math.IsInf(q.High, 0) {
				t.Errorf("%s by %s: %+v", m.Operation, m.Client, q)
			}
		}
	}
}

func TestAMissingInterpreterIsAnError(t *testing.T) {
	b := &flightBench{batches: 1, rounds: 1, latencies: 1, python: "no-such-python"}
	if _, err := b.measure(t.Context(), func(int, int) {}); err == nil {
		t.Error("no error")
	}
}
