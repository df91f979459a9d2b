package bench

import (
	"testing"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/kernels"
)

// TestRate: rates are positive, and the ratio is that of the served rate to the best of the same round.
func TestRate(t *testing.T) {
	rounds := 0
	b := &rateBench{N: 16, NFE: 3, Rounds: 1, Batches: []int{2, 8}}
	r, err := b.measure(t.Context(), devicetest.Open(t), random(t, little), kernels.Float32, func(int, int) { rounds++ })
	if err != nil {
		t.Fatal(err)
	}
	best := max(r.Bare[0].Median, r.Bare[1].Median)
	if rounds != 1 || !(best > 0) || !(r.Rate.Median > 0) || r.Ratio.Median != r.Rate.Median/best || r.Served.Large != 64 {
		t.Errorf("%d rounds: %+v", rounds, r)
	}
}
