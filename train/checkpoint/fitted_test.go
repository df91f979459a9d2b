package checkpoint

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

// TestFittedComesBack: with every bit, rows of different lengths filled up with zeros.
func TestFittedComesBack(t *testing.T) {
	s := &solver.Fitted{
		Sigma: []float64{80, 3, 0.002},
		Alpha: [][]float64{{1, 2}, {0.1, 0.3}},
		Beta:  [][][]float64{{{0.5}, {0.25}}, {{1, 0, -0.5}, {0.125, 0, 2}}},
	}
	file, err := FittedFile.Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	back, err := FittedFile.Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	s.Beta[0] = [][]float64{{0.5, 0, 0}, {0.25, 0, 0}}
	if diff := cmp.Diff(s, back); diff != "" {
		t.Error(diff)
	}
	for _, name := range []string{"sigma", "alpha", "beta"} {
		f, err := safetensors.Decode(file)
		if err != nil {
			t.Fatal(err)
		}
		f.Tensors = without(f, name)
		bad, err := encode(f)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := FittedFile.Decode(bad); err == nil {
			t.Errorf("without %s: accepted", name)
		}
	}
}
