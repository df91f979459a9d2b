package unet

import (
	"fmt"
	"math"
	"slices"
)

// Tensor is one entry of a state dict, row-major in PyTorch's layout.
type Tensor struct {
	Name  string
	Shape []int
	Data  []float32
}

// Load picks the values of Params, in their order, out of a state dict in any
// order. The constants that EDM stores beside its parameters may be there and
// must then agree with the configuration; ratio embeddings may be missing and
// are then zero. A tensor that is missing, unknown, twice there, of another
// shape or not finite is a *[StateError]. The result shares memory with state.
func (n *Net) Load(state []Tensor) ([][]float32, error) {
	given := make(map[string]Tensor, len(state))
	for _, t := range state {
		if _, ok := given[t.Name]; ok {
			return nil, &StateError{t.Name, "is there twice"}
		}
		given[t.Name] = t
	}
	var out [][]float32
	for _, e := range n.entries {
		t, ok := given[e.Name]
		delete(given, e.Name)
		switch {
		case !ok && e.constant != nil:
			continue
		case !ok && e.Optional:
			t.Data = make([]float32, e.Size())
		case !ok:
			return nil, &StateError{e.Name, fmt.Sprintf("is missing; config.json asks for it with shape %v", e.Shape)}
		case !slices.Equal(t.Shape, e.Shape) || len(t.Data) != e.Size():
			return nil, &StateError{e.Name, fmt.Sprintf("has shape %v and %d values; config.json asks for %v", t.Shape, len(t.Data), e.Shape)}
		}
		if e.constant != nil {
			if !agree(t.Data, e.constant) {
				return nil, &StateError{e.Name, fmt.Sprintf("holds %v; resample_filter in config.json gives %v", t.Data, e.constant)}
			}
			continue
		}
		if i := slices.IndexFunc(t.Data, notFinite); i >= 0 {
			return nil, &StateError{e.Name, fmt.Sprintf("holds %v at %d", t.Data[i], i)}
		}
		out = append(out, t.Data)
	}
	for _, t := range state {
		if _, left := given[t.Name]; left {
			return nil, &StateError{t.Name, "is unknown to the network of config.json"}
		}
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

func agree(a, b []float32) bool {
	for i := range b {
		if !(math.Abs(float64(a[i]-b[i])) <= 1e-6) {
			return false
		}
	}
	return true
}

func notFinite(v float32) bool { return v != v || math.IsInf(float64(v), 0) }
