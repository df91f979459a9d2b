package unet_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/kernels/nn"
)

// TestCheckTellsEverything: all faults of a state dict, in the network's order and the unknown ones after them, however
// the tensors came.
func TestCheckTellsEverything(t *testing.T) {
	net := build(t, small())
	state := net.State(net.Init(1))
	at := func(name string) int {
		return slices.IndexFunc(state, func(s nn.Tensor) bool { return s.Name == name })
	}
	state[at("model.map_layer1.weight")].Shape = []int{1}
	state[at("model.map_layer1.bias")].Name = "model.map_layer1.gain"
	state = slices.Delete(state, at("model.map_layer0.bias"), at("model.map_layer0.bias")+1)
	slices.Reverse(state)
	check := net.Check()
	for _, s := range state {
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
