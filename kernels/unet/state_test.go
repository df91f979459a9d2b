package unet_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/kernels/nn"
)

func TestStateGoesBothWays(t *testing.T) {
	cfg := small()
	cfg.EncoderType, cfg.ResampleFilter = "residual", []float64{1, 3, 3, 1}
	net := build(t, cfg)
	values := net.Init(9)
	state := net.State(values)
	if got := len(state) - len(values); got != 5 { // the filters of the layers that resample
		t.Errorf("%d constants in the state", got)
	}
	slices.Reverse(state) // the order on disk is free
	back, err := net.Load(state)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.EqualFunc(back, values, slices.Equal[[]float32]) {
		t.Error("values changed on the way")
	}
}

func TestLoadFillsInRatiosAndConstants(t *testing.T) {
	plain := build(t, small())
	values := plain.Init(2)
	cfg := small()
	cfg.RatioEmbedding = 1
	with := build(t, cfg)
	state := slices.DeleteFunc(plain.State(values), func(s nn.Tensor) bool {
		return strings.HasSuffix(s.Name,
			"resample_filter")
	})
	got, err := with.Load(state)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(got, func(v []float32) bool {
		return len(v) == 64 && !slices.ContainsFunc(v, func(f float32) bool { return f != 0 })
	})
	if i < 0 || with.Params()[i].Name != "model.map_ratio0.weight" {
		t.Fatalf("no zeros for the ratio embedding")
	}
	if !slices.EqualFunc(slices.Delete(got, i, i+1), values, slices.Equal[[]float32]) {
		t.Error("other values changed")
	}
}

func TestLoadRefuses(t *testing.T) {
	net := build(t, small())
	const victim = "model.map_layer0.weight"
	for _, c := range []struct {
		name, tensor, says string
		change             func(s []nn.Tensor, i int) []nn.Tensor
	}{
		{"missing", victim, "missing", func(s []nn.Tensor, i int) []nn.Tensor { return slices.Delete(s, i, i+1) }},
		{"twice", victim, "twice", func(s []nn.Tensor, i int) []nn.Tensor { return append(s, s[i]) }},
		{"unknown", "model.map_ratio0.weight", "unknown", func(s []nn.Tensor, _ int) []nn.Tensor {
			return append(s, nn.Tensor{Name: "model.map_ratio0.weight", Shape: []int{1}, Data: []float32{0}})
		}},
		{"transposed", victim, "shape", func(s []nn.Tensor, i int) []nn.Tensor { slices.Reverse(s[i].Shape); return s }},
		{"short", victim, "values", func(s []nn.Tensor, i int) []nn.Tensor { s[i].Data = s[i].Data[1:]; return s }},
		{"NaN", victim, "NaN", func(s []nn.Tensor, i int) []nn.Tensor { s[i].Data[3] = float32(math.NaN()); return s }},
		{"infinite", victim, "-Inf", func(s []nn.Tensor,
			i int,
		) []nn.Tensor {
			s[i].Data[3] = float32(math.Inf(-1))
			return s
		}},
		{
			"another filter", "model.enc.2x2_down.conv0.resample_filter", "resample_filter",
			func(s []nn.Tensor, _ int) []nn.Tensor {
				k := slices.IndexFunc(s, func(t nn.Tensor) bool { return t.Name == "model.enc.2x2_down.conv0.resample_filter" })
				s[k].Data[0] = 0.5
				return s
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			state := net.State(net.Init(2))
			i := slices.IndexFunc(state, func(s nn.Tensor) bool { return s.Name == victim })
			_, err := net.Load(c.change(state, i))
			var se *nn.StateError
			if !errors.As(err, &se) {
				t.Fatalf("got %v, want a *StateError", err)
			}
			if se.Tensor != c.tensor || !strings.Contains(se.Error(), c.says) {
				t.Errorf("got tensor %q: %v\nwant tensor %q and %q", se.Tensor, se, c.tensor, c.says)
			}
		})
	}
}

// TestCheckTellsEverything: all faults of a state dict, in the network's order and the unknown ones after them, however
// the tensors came.
func TestCheckTellsEverything(t *testing.T) {
	net := build(t, small())
	check := net.Check()
	for _, s := range slices.Backward(net.State(net.Init(1))) {
		switch s.Name {
		case "model.map_layer0.bias":
			continue
		case "model.map_layer1.weight":
			s.Shape = []int{1}
		case "model.map_layer1.bias":
			s.Name = "model.map_layer1.gain"
		}
		check.Add(s)
	}
	var got []string
	for _, f := range check.Faults() {
		got = append(got, strings.Join(strings.Fields(f.Error())[2:5], " "))
	}
	want := []string{
		"model.map_layer0.bias: is missing;", "model.map_layer1.weight: has shape",
		"model.map_layer1.bias: is missing;", "model.map_layer1.gain: is unknown",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}
