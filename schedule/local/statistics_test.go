package local_test

import (
	"math"
	"testing"

	"github.com/anisoflight/anisoflight/internal/testing/ensembletest"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/local"
)

// A normal law's variance is the same at every noise level, between those measured and beyond them.
func TestVarianceOfANormalLaw(t *testing.T) {
	want := []float64{0, 1e-4, 0.3, 20}
	s := ensembletest.NormalStatistics(t, basis.Bands{H: 2, W: 2, C: 1}, want)
	got := make([]float64, len(want))
	for _, sigma := range []float64{1e-4, 0.1, 0.7, 10, 500} {
		s.Variance(got, 0, sigma)
		for f, v := range got {
			if math.Abs(v-want[f]) > 1e-11*want[f]+1e-300 {
				t.Errorf("σ %v: λ = %v, want %v", sigma, v, want[f])
			}
		}
	}
}

// λ = σ² q/(1 − q) is log-linear in ln σ between the levels and never above the data's variance.
func TestVarianceOfGains(t *testing.T) {
	row := local.Row{
		Variance: []float64{1, 0.02, 5},
		Gain:     [][]float64{{0.5, 0.9, 1.3}, {0.2, 0.01, 0.5}},
	}
	s, err := local.New(basis.Bands{H: 1, W: 3, C: 1}, nil, []float64{0.1, 1}, []local.Row{row})
	if err != nil {
		t.Fatal(err)
	}
	low, high := []float64{0.01, 0.02, 5}, []float64{0.25, 0.01 / 0.99, 1}
	got := make([]float64, 3)
	for _, c := range []struct{ sigma, part float64 }{{0.05, 0}, {0.1, 0}, {math.Sqrt(0.1), 0.5}, {1, 1}, {30, 1}} {
		s.Variance(got, 0, c.sigma)
		for f, v := range got {
			want := math.Pow(low[f], 1-c.part) * math.Pow(high[f], c.part)
			if math.Abs(v-want) > 1e-12*want {
				t.Errorf("σ %v, coordinate %d: λ = %v, want %v", c.sigma, f, v, want)
			}
		}
	}
}

func TestNewRefuses(t *testing.T) {
	good := local.Row{Variance: []float64{1, 1}, Gain: [][]float64{{0, 0}, {0, 0}}}
	with := func(change func(r *local.Row)) []local.Row {
		r := good
		change(&r)
		return []local.Row{r}
	}
	for name, c := range map[string]struct {
		labels []int
		sigma  []float64
		rows   []local.Row
	}{
		"one level":        {nil, []float64{1}, []local.Row{good}},
		"falling levels":   {nil, []float64{2, 1}, []local.Row{good}},
		"no row":           {nil, []float64{1, 2}, nil},
		"two shared rows":  {nil, []float64{1, 2}, []local.Row{good, good}},
		"labels twice":     {[]int{1, 1}, []float64{1, 2}, []local.Row{good, good}},
		"too few gains":    {nil, []float64{1, 2, 3}, []local.Row{good}},
		"negative gain":    {nil, []float64{1, 2}, with(func(r *local.Row) { r.Gain = [][]float64{{0, -1}, {0, 0}} })},
		"no variance":      {nil, []float64{1, 2}, with(func(r *local.Row) { r.Variance = nil })},
		"infinite":         {nil, []float64{1, 2}, with(func(r *local.Row) { r.Variance = []float64{1, math.Inf(1)} })},
		"skewed axes":      {nil, []float64{1, 2}, with(func(r *local.Row) { r.Axes = []float64{1, 0, 1, 0} })},
		"axes of no image": {nil, []float64{1, 2}, with(func(r *local.Row) { r.Axes = []float64{1} })},
	} {
		if _, err := local.New(basis.Bands{H: 1, W: 1, C: 2}, c.labels, c.sigma, c.rows); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
