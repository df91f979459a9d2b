package selfcheck

import (
	"math"
	"testing"

	"github.com/anisoflight/anisoflight/internal/devicetest"
	"github.com/anisoflight/anisoflight/kernels/device"
)

func TestRun(t *testing.T) {
	fallback, err := device.Open(device.Config{Plugin: "go"})
	if err != nil {
		t.Fatal(err)
	}
	defer fallback.Close()
	for _, dev := range []*device.Device{devicetest.Open(t), fallback} {
		for _, r := range Run(t.Context(), dev) {
			t.Logf("%s: %s: %s (%.2f s)", dev.Name(), r.Name, r.Detail, r.Seconds)
			if r.Err != nil {
				t.Errorf("%s: %s: %v", dev.Name(), r.Name, r.Err)
			}
		}
	}
}

// The checks can fail: a wrong number is noticed.
func TestCompareNotices(t *testing.T) {
	if _, err := compare([]float32{1, 2}, []float64{1, 2.1}, 1e-3, ""); err == nil {
		t.Error("a deviation of 0.1 passed")
	}
	if _, err := compare([]float64{math.NaN()}, []float64{1}, 1e-3, ""); err == nil {
		t.Error("NaN passed")
	}
	if _, err := compare([]float64{1}, nil, 1e-3, ""); err == nil {
		t.Error("a missing value passed")
	}
}
