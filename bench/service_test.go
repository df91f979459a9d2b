package bench

import (
	"testing"

	"github.com/anisoflight/anisoflight/internal/engine"
	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
)

// TestService: a round of each measure gives numbers that can be.
func TestService(t *testing.T) {
	rounds := 0
	b := &serviceBench{serviceSettings: serviceSettings{N: 16, NFE: 3, Clients: 3, Each: 2, Requests: 2, Rounds: 2}}
	cfg := engine.Config{Slots: 1}
	r, err := b.measure(t.Context(), devicetest.Open(t), random(t, little), cfg, func(int, int) { rounds++ })
	if err != nil {
		t.Fatal(err)
	}
	if rounds != 2 || r.serviceSettings != b.serviceSettings {
		t.Errorf("%d rounds of %+v", rounds, r)
	}
	for what, v := range map[string]quartiles{
		"engine": r.Overhead.Engine, "flight": r.Overhead.Flight, "wall": r.Overhead.Wall, "cpu": r.Overhead.CPU,
		"rate": r.Concurrent.Rate, "latency": r.Concurrent.Latency, "worst": r.Concurrent.Batched.Worst,
	} {
		if !(v.Median > 0) {
			t.Errorf("%s is %v", what, v)
		}
	}
	if !(r.Concurrent.Shared >= 0 && r.Concurrent.Shared < 1) {
		t.Errorf("%v of the evaluations were shared", r.Concurrent.Shared)
	}
}
