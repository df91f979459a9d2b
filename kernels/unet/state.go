package unet

import (
	"fmt"
	"slices"
)

// Tensor is one entry of a state dict, row-major in PyTorch's layout.
type Tensor struct {
	Name  string
	Shape []int
	Data  []float32
}

// Load picks the values of Params, in their order, out of a state dict in any
// order. What [Net.Check] finds wrong first is the error. The result shares memory
// with state.
func (n *Net) Load(state []Tensor) ([][]float32, error) {
	given := make(map[string][]float32, len(state))
	check := n.Check()
	for _, t := range state {
		check.Add(t)
		given[t.Name] = t.Data
	}
	if faults := check.Faults(); len(faults) > 0 {
		return nil, faults[0]
	}
	var out [][]float32
	for _, e := range n.entries {
		if e.constant != nil {
			continue
		}
		data, ok := given[e.Name]
		if !ok {
			data = make([]float32, e.Size())
		}
		out = append(out, data)
	}
	return out, nil
}

// State returns the state dict with these values of Params, EDM's constants
// included, in EDM's order. It shares memory with values and panics where their
// number or sizes differ from Params.
func (n *Net) State(values [][]float32) []Tensor {
	out := make([]Tensor, len(n.entries))
	i := 0
	for k, e := range n.entries {
		data := slices.Clone(e.constant)
		if e.constant == nil {
			data = values[i]
			i++
		}
		if len(data) != e.Size() {
			panic(fmt.Sprintf("unet: %s has %d values, got %d", e.Name, e.Size(), len(data)))
		}
		out[k] = Tensor{Name: e.Name, Shape: slices.Clone(e.Shape), Data: data}
	}
	if i != len(values) {
		panic(fmt.Sprintf("unet: %d parameters, got %d", i, len(values)))
	}
	return out
}

// Buffers returns the constants that EDM keeps in its state dict: the
// resample_filter of every resampling layer.
func (n *Net) Buffers() []Tensor {
	var out []Tensor
	for _, e := range n.entries {
		if e.constant != nil {
			out = append(out, Tensor{Name: e.Name, Shape: slices.Clone(e.Shape), Data: slices.Clone(e.constant)})
		}
	}
	return out
}
