package frechet

import (
	"math"
	"testing"
)

// The change of a mean is the difference of its ln, with the standard error of the paired differences.
func TestChangeIsAJackknife(t *testing.T) {
	values := []float64{1, 2, 4, 5}
	without := make([]float64, len(values))
	for i := range values {
		for k, v := range values {
			if k != i {
				without[i] += v / 3
			}
		}
		without[i] = math.Exp(without[i])
	}
	ones := []float64{1, 1, 1, 1}
	change, stderr := Change(ones, without)
	if want := math.Sqrt((4. + 1 + 1 + 4) / 3 / 4); math.Abs(change-3) > 1e-12 || math.Abs(stderr-want) > 1e-12 {
		t.Errorf("%v ± %v, want 3 ± %v", change, stderr, want)
	}
}
