package passes

import (
	"errors"
	"math"
	"testing"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/setting"
)

// TestScaleOfGaussian: data of variance v in each of four directions and mean 0 have 4 v in all. A start from noise of
// variance T misses (1 − √(T/(v+T)))² of it, which solves to T = v a²/(1 − a²) with a = 1 − √part.
func TestScaleOfGaussian(t *testing.T) {
	const v = 0.04
	_, d := gaussian(t, basis.None(2, 2), []float64{v}, 4096)
	s, err := MeasureScale(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	a := 1 - math.Sqrt(horizon)
	within(t, "c", s.C, 4*v, 0.1*4*v)
	within(t, "T", s.T, v*a*a/(1-a*a), 0.1*s.T)
}

// TestDefaultScale: what is given stays; the end of time lies within the network's noise levels.
func TestDefaultScale(t *testing.T) {
	_, d := gaussian(t, basis.None(2, 2), []float64{0.04}, 256)
	s, err := MeasureScale(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		T, c  float64
		known schedule.Range
		wantT float64
		wantC float64
	}{
		{wantT: s.T, wantC: s.C},
		{T: 3, wantT: 3, wantC: s.C},
		{c: 2, wantT: s.T, wantC: 2},
		{known: schedule.Range{Min: 0.01, Max: 0.5}, wantT: 0.25, wantC: s.C},
	} {
		T, got := c.T, c.c
		if err := DefaultScale(t.Context(), &T, &got, d, c.known); err != nil || T != c.wantT || got != c.wantC {
			t.Errorf("%+v: T %v, c %v, error %v", c, T, got, err)
		}
	}
	_, alone := gaussian(t, basis.None(2, 2), []float64{0.04}, 1)
	var T, c float64
	err = DefaultScale(t.Context(), &T, &c, alone, schedule.Range{})
	if e, ok := errors.AsType[*setting.Error](err); !ok || e.Field != "c" {
		t.Errorf("one image: T %v, c %v, error %v", T, c, e)
	}
}
