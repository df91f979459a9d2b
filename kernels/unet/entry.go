package unet

import "github.com/anisoflight/anisoflight/kernels/nn"

// entry is one tensor of the state dict: a parameter, or a constant that EDM
// keeps beside its parameters (a registered buffer).
type entry struct {
	nn.Param
	constant []float32 // nil for a parameter
}

func entriesOf(params []nn.Param) []entry {
	out := make([]entry, len(params))
	for i, p := range params {
		out[i] = entry{Param: p}
	}
	return out
}
