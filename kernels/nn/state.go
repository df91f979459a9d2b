package nn

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

// Entry is one tensor of a network's state dict: a parameter, or a constant that is stored with the parameters (a
// registered buffer of PyTorch).
type Entry struct {
	Param
	Constant []float32 // nil for a parameter
	// Check, if not nil, says what is wrong with finite values of the right number, or returns "".
	Check func(data []float32) string
}

// Layout is the state dict of a network: its tensors in order. Networks embed it.
type Layout []Entry

// Entries returns the parameters of layers as entries without Check.
func Entries(layers ...interface{ Params() []Param }) (out []Entry) {
	for _, l := range layers {
		for _, p := range l.Params() {
			out = append(out, Entry{Param: p})
		}
	}
	return out
}

// Params returns the parameters in the order of the state dict.
func (l Layout) Params() []Param {
	var out []Param
	for _, e := range l {
		if e.Constant == nil {
			out = append(out, e.Param)
		}
	}
	return out
}

// Init draws initial values, in PyTorch's layout and the order of Params; see [Param.Values].
func (l Layout) Init(seed uint64) (out [][]float32) {
	for _, p := range l.Params() {
		out = append(out, p.Values(seed))
	}
	return out
}

// ParamCount returns the number of trained scalars.
func (l Layout) ParamCount() int {
	total := 0
	for _, p := range l.Params() {
		if !p.Frozen {
			total += p.Size()
		}
	}
	return total
}

// Load returns the values of Params, in their order, from a state dict in any order. The error is the first fault of
// [Layout.Check]. The result shares memory with state.
func (l Layout) Load(state []Tensor) ([][]float32, error) {
	values := make(map[string][]float32, len(state))
	check := l.Check()
	for _, t := range state {
		check.Add(t)
		values[t.Name] = t.Data
	}
	if faults := check.Faults(); len(faults) > 0 {
		return nil, faults[0]
	}
	var out [][]float32
	for _, e := range l {
		if e.Constant != nil {
			continue
		}
		data, ok := values[e.Name]
		if !ok {
			data = make([]float32, e.Size())
		}
		out = append(out, data)
	}
	return out, nil
}

// State returns the state dict with these values of Params and the constants, in order. It shares memory with values,
// and panics if their number or sizes differ from Params.
func (l Layout) State(values [][]float32) []Tensor {
	out := make([]Tensor, len(l))
	i := 0
	for k, e := range l {
		data := slices.Clone(e.Constant)
		if e.Constant == nil {
			data = values[i]
			i++
		}
		if len(data) != e.Size() {
			panic(fmt.Sprintf("nn: %s has %d values, got %d", e.Name, e.Size(), len(data)))
		}
		out[k] = Tensor{Name: e.Name, Shape: slices.Clone(e.Shape), Data: data}
	}
	if i != len(values) {
		panic(fmt.Sprintf("nn: %d parameters, got %d", i, len(values)))
	}
	return out
}
