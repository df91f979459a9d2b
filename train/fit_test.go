package train

import (
	"errors"
	"testing"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/kernels"
)

// TestMicrobatchIsTheLargestThatFits: with less and less memory the whole batch, then the fewest equal parts that fit,
// and in the end an error; what fits is never cut up.
func TestMicrobatchIsTheLargestThatFits(t *testing.T) {
	const batch = 24
	cfg := Config{
		Stage: Isotropic, Batch: batch, TrainSchedule: new(true), TrainNetwork: new(true),
		Estimator: string(kernels.Backprop),
	}
	model, err := kernels.NewModel(devicetest.PureGo(t), tinyModel(t).Net.(kernels.Network), nil)
	if err != nil {
		t.Fatal(err)
	}
	known := map[int]int64{}
	need := func(part int) int64 {
		if known[part] == 0 {
			bytes, err := model.StepMemory(cfg.Trainer(), batch, part, false)
			if err != nil {
				t.Fatal(err)
			}
			known[part] = bytes
		}
		return known[part]
	}
	parts := []int{1, 5, 6, 8, 12, 24}
	for i, part := range parts[1:] {
		if need(part) <= need(parts[i]) {
			t.Errorf("%d images need %d bytes, %d need %d", part, need(part), parts[i], need(parts[i]))
		}
	}
	for _, c := range []struct {
		limit int64
		want  int
	}{
		{need(batch), 24},
		{need(batch) - 1, 12},
		{need(12), 12},
		{need(12) - 1, 8},
		{need(6), 6},
		{need(6) - 1, 5},
		{need(1), 1},
	} {
		fit, err := cfg.Fit(model, c.limit)
		if err != nil || fit.Microbatch != c.want || fit.Needed != need(c.want) || fit.Available != c.limit ||
			(fit.Whole > 0) != (c.want < batch) {
			t.Errorf("with %d bytes: %+v, %v, want %d", c.limit, fit, err, c.want)
		}
	}

	var short *MemoryError
	if _, err := cfg.Fit(model, need(1)-1); !errors.As(err, &short) || short.Needed != need(1) ||
		short.Available != need(1)-1 {
		t.Errorf("too little for one image: %v", err)
	}
	cfg.Microbatch = 8
	if fit, err := cfg.Fit(model, need(8)); err != nil || fit.Microbatch != 8 {
		t.Errorf("a given microbatch that fits: %+v, %v", fit, err)
	}
	if _, err := cfg.Fit(model, need(8)-1); !errors.As(err, &short) || short.Microbatch != 8 {
		t.Errorf("a given microbatch that does not fit: %v", err)
	}
}
