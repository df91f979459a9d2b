package schedule_test

import (
	"math"
	"testing"

	"github.com/anisoflight/anisoflight/schedule"
)

// TestRange: the network's own ends, and EDM's where there are none.
func TestRange(t *testing.T) {
	for _, c := range []struct {
		r           schedule.Range
		lo, hi, end float64 // where schedules end
	}{
		{schedule.Range{}, 0.002, 80, 80},
		{schedule.Range{Min: 0.03, Max: 14.6}, 0.03, 14.6, 14.6},
		{schedule.Range{Max: 157}, 0.002, 157, 80},
		{schedule.Range{Min: 0.1}, 0.1, 80, 80},
		{schedule.Range{Max: 0.001}, 0.001 / 40000, 0.001, 0.001},
		{schedule.Range{Min: 100}, 100, 8e3, 8e3},
		{schedule.Range{Min: 100, Max: 200}, 100, 200, 200},
	} {
		if T := c.r.T(); math.Abs(T-c.end*c.end) > 1e-12*T {
			t.Errorf("schedules for %v end at the variance %v, want %v", c.r, T, c.end*c.end)
		}
		if lo, hi := c.r.Ends(); lo != c.lo || hi != c.hi {
			t.Errorf("%v ends at %v and %v, want %v and %v", c.r, lo, hi, c.lo, c.hi)
		}
	}
	r := schedule.Range{Min: 0.03, Max: 14.6}
	for sigma, want := range map[float64]bool{0.0299: false, 0.03: true, 1: true, 14.6: true, 14.61: false} {
		if r.Holds(sigma*sigma) != want {
			t.Errorf("%v holds %v: %v", r, sigma, !want)
		}
	}
	if !(schedule.Range{}).Holds(1e9) {
		t.Error("the range of an unbounded network has an end")
	}
	if got := r.Within(schedule.Range{Min: 0.1, Max: 80}); got != (schedule.Range{Min: 0.1, Max: 14.6}) {
		t.Errorf("within: %v", got)
	}
	if got := (schedule.Range{}).Within(r); got != r {
		t.Errorf("within none: %v", got)
	}
	if !r.Within(schedule.Range{Min: 20}).Empty() || r.Empty() || (schedule.Range{}).Empty() {
		t.Error("the empty range is not told from others")
	}
}
