package checkpoint

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anisoflight/anisoflight/schedule/local"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

func someStatistics(t *testing.T, labels []int) *local.Statistics {
	t.Helper()
	rows := make([]local.Row, max(len(labels), 1))
	for r := range rows {
		v := float64(r + 1)
		rows[r] = local.Row{Variance: []float64{v, 0.1, 0, 2}, Gain: [][]float64{{0.9, v / 10, 0, 1.2}, {0.1, 0.2, 0.3, 0.4}}}
	}
	rows[0].Axes = []float64{0, 1, -1, 0, 0.6, 0.8, -0.8, 0.6}
	s, err := local.New(1, 2, 2, labels, []float64{0.1, 3}, rows)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestStatisticsComeBack: with every bit, shared or by class; equal statistics have equal bytes.
func TestStatisticsComeBack(t *testing.T) {
	for _, labels := range [][]int{nil, {0, 3}} {
		s := someStatistics(t, labels)
		file, err := StatisticsFile.Encode(s)
		if err != nil {
			t.Fatal(err)
		}
		back, err := StatisticsFile.Decode(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(labels, back.Labels()) + cmp.Diff(s.Sigma(), back.Sigma()); diff != "" {
			t.Error(diff)
		}
		for r := range s.Rows() {
			if diff := cmp.Diff(s.At(r), back.At(r)); diff != "" {
				t.Errorf("row %d: %s", r, diff)
			}
		}
		first, _ := StatisticsFile.Hash(s)
		again, err := StatisticsFile.Hash(back)
		if err != nil || first != again {
			t.Errorf("hashes %s and %s, %v", first, again, err)
		}
	}
}

// TestBadStatistics: what cannot be used is an *Error that names the tensor.
func TestBadStatistics(t *testing.T) {
	good, err := StatisticsFile.Encode(someStatistics(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(f *safetensors.File)
		want   string
	}{
		"format":  {func(f *safetensors.File) { f.Metadata["format"] = "other" }, "format"},
		"no gain": {func(f *safetensors.File) { f.Tensors = without(f, "gain.-1") }, "gain.-1"},
		"no rows": {func(f *safetensors.File) { f.Tensors = without(f, "variance.-1") }, "sigma"},
		"shape":   {func(f *safetensors.File) { f.Lookup("axes.-1").Shape = []int{1, 2, 4, 1} }, "axes.-1"},
		"levels":  {func(f *safetensors.File) { f.Lookup("sigma").Shape = []int{2, 1} }, "sigma"},
	} {
		f, err := safetensors.Decode(good)
		if err != nil {
			t.Fatal(err)
		}
		c.change(f)
		file, err := encode(f)
		if err != nil {
			t.Fatal(err)
		}
		_, err = StatisticsFile.Decode(file)
		var wrong *Error
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	if _, err := StatisticsFile.Decode([]byte("hello")); err == nil {
		t.Error("no file at all: accepted")
	}
}

func without(f *safetensors.File, name string) (kept []safetensors.Tensor) {
	for _, t := range f.Tensors {
		if t.Name != name {
			kept = append(kept, t)
		}
	}
	return kept
}
