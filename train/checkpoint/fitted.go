package checkpoint

import (
	"slices"

	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

// FittedFile is that of fitted coefficients. Its tensors, all of float64, are the nodes and, of
// each step, the weights in the coordinates of the schedule's statistics:
//
//	sigma  [N + 1]  noise levels, decreasing
//	alpha  [N, d]
//	beta   [N, d, h], of the evaluation, its state, the evaluation before, …
var FittedFile = Sidecar[solver.Fitted]{"fitted.safetensors", "anisoflight-fitted", writeFitted, readFitted}

func writeFitted(s *solver.Fitted) *safetensors.File {
	n, d, h := len(s.Alpha), len(s.Alpha[0]), 0
	for _, stage := range s.Beta {
		for _, beta := range stage {
			h = max(h, len(beta))
		}
	}
	flat := make([]float64, n*d*h)
	for i, stage := range s.Beta {
		for f, beta := range stage {
			copy(flat[(i*d+f)*h:], beta)
		}
	}
	return &safetensors.File{Tensors: []safetensors.Tensor{
		safetensors.FromFloat64s("sigma", []int{n + 1}, s.Sigma),
		safetensors.FromFloat64s("alpha", []int{n, d}, slices.Concat(s.Alpha...)),
		safetensors.FromFloat64s("beta", []int{n, d, h}, flat),
	}}
}

func readFitted(f *sidecarFile) (*solver.Fitted, error) {
	t := f.Lookup("beta")
	if t == nil || len(t.Shape) != 3 || slices.Min(t.Shape) < 1 {
		return nil, f.failf("beta", "must be there, of three dimensions")
	}
	n, d, h := t.Shape[0], t.Shape[1], t.Shape[2]
	var values [3][]float64
	for i, tensor := range []struct {
		name  string
		shape []int
	}{{"sigma", []int{n + 1}}, {"alpha", []int{n, d}}, {"beta", []int{n, d, h}}} {
		var err error
		if values[i], err = f.float64s(tensor.name, tensor.shape...); err != nil {
			return nil, err
		}
		for _, x := range values[i] {
			if x-x != 0 {
				return nil, f.failf(tensor.name, "must be finite")
			}
		}
	}
	out := &solver.Fitted{Sigma: values[0]}
	for i := range n {
		out.Alpha = append(out.Alpha, values[1][i*d:(i+1)*d])
		out.Beta = append(out.Beta, slices.Collect(slices.Chunk(values[2][i*d*h:(i+1)*d*h], h)))
	}
	return out, nil
}
