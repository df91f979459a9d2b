package device_test

import (
	"testing"

	"github.com/gomlx/gomlx/pkg/core/dtypes"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
)

// TestMatmulPeakIsMeasuredOnce: unknown at first, then the same number for good, and at least the mean rate of the
// products it was measured on.
func TestMatmulPeakIsMeasuredOnce(t *testing.T) {
	dev := devicetest.PureGo(t)
	if peak, ok := dev.Peak(); ok || peak != 0 {
		t.Errorf("the peak is %v before it is measured", peak)
	}
	first, err := dev.MatmulPeak(t.Context(), dtypes.Float32)
	if err != nil {
		t.Fatal(err)
	}
	work := dev.Work()["peak"]
	if mean := float64(work.FLOPs) / work.Seconds; work.Runs == 0 || first < mean/2 {
		t.Errorf("peak %.3g FLOP/s, the mean of %d products %.3g", first, work.Runs, mean)
	}
	second, err := dev.MatmulPeak(t.Context(), dtypes.Float32)
	known, ok := dev.Peak()
	if err != nil || second != first || !ok || known != first || dev.Work()["peak"].Runs != work.Runs {
		t.Errorf("peak %v, then %v and %v, %v", first, second, known, err)
	}
}
