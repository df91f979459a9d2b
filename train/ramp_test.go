package train

import (
	"math"
	"testing"
)

func TestRamps(t *testing.T) {
	for _, c := range []struct {
		name     string
		ramp     Ramp
		from, to float64
		want     float64
	}{
		{"constant", Ramp{Kind: RampConstant, Rate: 2, Length: 100}, 50, 51, 2},
		{"warm-up, first step", Ramp{Kind: RampConstant, Rate: 2, Length: 100, Warmup: 10}, 0, 1, 0.2},
		{"warm-up, last step", Ramp{Kind: RampConstant, Rate: 2, Length: 100, Warmup: 10}, 9, 10, 2},
		{"cosine before the fall", Ramp{Kind: RampCosine, Rate: 2, Length: 100, Hold: 0.5}, 49, 50, 2},
		{"cosine half way down", Ramp{Kind: RampCosine, Rate: 2, Length: 100, Hold: 0.5}, 75, 76, 1},
		{"cosine at the end", Ramp{Kind: RampCosine, Rate: 2, Length: 100, Hold: 0.5}, 100, 101, 0},
		{"cosine to a tenth", Ramp{Kind: RampCosine, Rate: 2, Length: 100, Final: 0.1}, 100, 101, 0.2},
		{"cosine to a tenth, half way", Ramp{Kind: RampCosine, Rate: 2, Length: 100, Final: 0.1}, 50, 51, 1.1},
		{"cosine beyond the end", Ramp{Kind: RampCosine, Rate: 2, Length: 100, Final: 0.1}, 500, 501, 0.2},
		{"published never completes", Ramp{Kind: RampPublished, Rate: 1, Length: 1200}, 599, 600, 0.06},
		{"published, an eighth after the middle", Ramp{Kind: RampPublished, Rate: 1, Length: 1200}, 750, 751, 0.0751 / 2},
		{"published, at the end", Ramp{Kind: RampPublished, Rate: 1, Length: 1200}, 1199, 1200, 0.12 / 8},
		{"published, a long run", Ramp{Kind: RampPublished, Rate: 1, Length: 1e5}, 2e4, 2e4, 1},
		{"completed at the middle", Ramp{Kind: RampCompleted, Rate: 1, Length: 1200}, 599, 600, 1},
		{"completed, a quarter", Ramp{Kind: RampCompleted, Rate: 1, Length: 1200}, 299, 300, 0.5},
	} {
		if got := c.ramp.At(c.from, c.to); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
