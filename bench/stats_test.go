package bench

import "testing"

func TestQuartiles(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   quartiles
		text   string
	}{
		{[]float64{4, 1, 3, 2, 5}, quartiles{2, 3, 4}, "3.0 (2.0–4.0)"},
		{[]float64{1, 2}, quartiles{1.25, 1.5, 1.75}, "1.5 (1.2–1.8)"},
		{[]float64{7}, quartiles{7, 7, 7}, "7.0 (7.0–7.0)"},
	} {
		got := quartilesOf(c.values)
		if got != c.want || got.text("%.1f") != c.text {
			t.Errorf("quartiles of %v are %+v, %s", c.values, got, got.text("%.1f"))
		}
	}
}

// A ratio is taken within a round: the median of ratios, not the ratio of medians.
func TestRatio(t *testing.T) {
	s := series{}
	for _, round := range [][2]float64{{1, 1}, {8, 2}, {3, 1}} {
		s.add("a", round[0])
		s.add("b", round[1])
	}
	if got := s.ratio("a", "b"); got != (quartiles{2, 3, 3.5}) {
		t.Errorf("%+v", got)
	}
}
