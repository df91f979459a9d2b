package selfcheck

import (
	"math"
	"testing"

	"github.com/anisoflight/anisoflight/internal/devicetest"
	"github.com/anisoflight/anisoflight/kernels/device"
)

func TestRun(t *testing.T) {
	for _, dev := range []*device.Device{devicetest.Open(t), devicetest.PureGo(t)} {
		results := Run(t.Context(), dev)
		if len(results) != len(checks) {
			t.Errorf("%s: %d results", dev.Name(), len(results))
		}
		for _, r := range results {
			if r.Err != nil {
				t.Errorf("%s: %s: %v", dev.Name(), r.Name, r.Err)
			}
		}
	}
}

// The checks can fail.
func TestDefectsAreNoticed(t *testing.T) {
	for name, c := range map[string]struct{ got, want []float64 }{
		"a deviation": {[]float64{1, 2}, []float64{1, 2.1}},
		"NaN":         {[]float64{math.NaN()}, []float64{1}},
		"few values":  {[]float64{1}, nil},
	} {
		if relativeDeviation(c.got, c.want) <= tolerance {
			t.Errorf("%s passed", name)
		}
	}
	dev := devicetest.Open(t)
	unmatched := check{places: 1}
	before := dev.Stats()
	before.Compiled-- // as if a program had been compiled, in which no rule has found anything
	if err := unmatched.rewritten(dev, before); dev.Name() == "xla:cpu" && err == nil {
		t.Error("a program that is not rewritten passed")
	}
}
