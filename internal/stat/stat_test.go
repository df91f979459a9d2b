package stat

import "testing"

func TestOf(t *testing.T) {
	got := Of([]float64{4, 1, 3, 2, 5})
	if want := (Stat{Low: 2, Median: 3, High: 4}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if got := Of([]float64{1, 2}); got.Median != 1.5 || got.Low != 1.25 {
		t.Errorf("%+v", got)
	}
	if text := got.Text("%.1f"); text != "3.0 (2.0–4.0)" {
		t.Error(text)
	}
}
