package stats

import (
	"math"
	"testing"
)

func TestMeans(t *testing.T) {
	x := []float64{1, 3, 2, 6}
	mean, stderr := MeanStderr(x)
	if mean != 3 || Mean(x) != 3 || math.Abs(stderr-math.Sqrt(14.0/3/4)) > 1e-15 {
		t.Errorf("%v ± %v", mean, stderr)
	}
	if mean, stderr := StratifiedMean(x); mean != 3 || math.Abs(stderr-math.Sqrt(4+16)/4) > 1e-15 {
		t.Errorf("stratified: %v ± %v", mean, stderr)
	}
	if mean, stderr := MeanStderr(x[:1]); mean != 1 || stderr != 0 {
		t.Errorf("of one: %v ± %v", mean, stderr)
	}
}
