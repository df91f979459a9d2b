package normalization

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestForwardAndBack(t *testing.T) {
	a, err := New([]float64{280, -1}, []float64{16, 0.25}, 2)
	if err != nil {
		t.Fatal(err)
	}
	x := []float32{296, -0.75, 272, -1.5}
	want := []float32{1, 1, -0.5, -2}
	a.Forward(x)
	if !slices.Equal(x, want) {
		t.Errorf("forward %v, want %v", x, want)
	}
	a.Back(x)
	if !slices.Equal(x, []float32{296, -0.75, 272, -1.5}) {
		t.Errorf("back %v", x)
	}
	var none *Affine
	none.Forward(x)
	none.Back(x)
	if x[0] != 296 || none.Fits(7) != nil || none.Clone() != nil || !none.Equal(nil) || none.Equal(a) {
		t.Error("nil is not the identity")
	}
}

func TestNew(t *testing.T) {
	a, err := New([]float64{3}, nil, 2)
	if err != nil || !a.Equal(&Affine{[]float64{3, 3}, []float64{1, 1}}) {
		t.Errorf("%v, %v", a, err)
	}
	for want, c := range map[string][2][]float64{
		"one for each of 2 channels, got 3": {{1, 2, 3}, nil},
		"mean must be finite":               {{math.NaN()}, nil},
		"mean must be finite, got +Inf":     {{math.Inf(1)}, nil},
		"got 0 for channel 1":               {nil, []float64{1, 0}},
		"got -2 for channel 0":              {nil, []float64{-2}},
		"got NaN":                           {nil, []float64{math.NaN()}},
		"got 1e-40":                         {nil, []float64{1e-40}},
	} {
		if _, err := New(c[0], c[1], 2); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", c, err, want)
		}
	}
}

func TestJSON(t *testing.T) {
	a, _ := New([]float64{0.1, 1e-7}, []float64{1. / 3}, 2)
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	var b Affine
	if err := json.Unmarshal(text, &b); err != nil || !b.Equal(a) {
		t.Errorf("%s becomes %v, %v", text, b, err)
	}
	for _, bad := range []string{
		`3`, `{}`, `{"mean":[1],"scale":[1,2]}`, `{"mean":[],"scale":[]}`, `{"mean":[1],"scale":[0]}`,
	} {
		if err := json.Unmarshal([]byte(bad), &b); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

// TestMeasure: the moments are those of the definition, far from zero, too.
func TestMeasure(t *testing.T) {
	m := NewMeasure(2)
	for i := range 1000 {
		m.Add(float32(1e6+i%2), 0)
		m.Add(float32(i), 1)
	}
	mean, std := m.Moments()
	scales, err := m.Scales()
	for c, want := range [][2]float64{{1e6 + 0.5, 0.5}, {499.5, math.Sqrt((1000*1000 - 1) / 12.)}} {
		if math.Abs(mean[c]-want[0]) > 1e-9 || math.Abs(std[c]-want[1]) > 1e-9 || scales[c] != std[c]/SigmaData {
			t.Errorf("channel %d: mean %v, deviation %v, scale %v; want %v", c, mean[c], std[c], scales[c], want)
		}
	}
	if err != nil {
		t.Error(err)
	}
}

func TestConstantChannel(t *testing.T) {
	m := NewMeasure(2)
	for i := range 10 {
		m.Add(float32(i), 0)
		m.Add(287.15, 1)
	}
	if _, err := m.Scales(); err == nil || !strings.Contains(err.Error(), "channel 1 is 287.1") {
		t.Errorf("a constant channel: %v", err)
	}
}

func TestIsFinite(t *testing.T) {
	a, _ := New([]float64{0}, []float64{1e-20}, 1)
	for x, want := range map[float32]bool{1: true, 1e20: false, float32(math.Inf(1)): false, float32(math.NaN()): false} {
		if a.IsFinite(x, 0) != want {
			t.Errorf("%v is finite: %v", x, !want)
		}
	}
}
