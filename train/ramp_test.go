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

// TestRatesFollowTheImagesSeen: the rates of a step are those between the images seen before it and after it.
func TestRatesFollowTheImagesSeen(t *testing.T) {
	cfg := tinyConfig(Isotropic)
	cfg.Kimg, cfg.LR, cfg.LRHold, cfg.ScheduleLR, cfg.ScheduleLRWarmup = 0.032, 2e-3, new(float64), 4e-2, 0.016
	r := start(t, cfg, Sources{Dataset: tinyData(t, 16)})
	fall := func(part float64) float64 { return (1 + math.Cos(math.Pi*part)) / 2 }
	for i, row := range step(t, r, 3) {
		part := float64(i) / 4
		within(t, "kimg", row.Kimg, 0.008*float64(i+1), 1e-15)
		within(t, "lr", row.LR, 2e-3*fall(part), 1e-12)
		within(t, "schedule_lr", row.ScheduleLR, 4e-2*min(float64(i+1)/2, 1)*(0.1+0.9*fall(part)), 1e-12)
	}
	if got := r.Progress().Kimg; got != 0.024 {
		t.Errorf("after three steps of eight images kimg is %v", got)
	}
}
