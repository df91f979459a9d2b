package checkpoint

import (
	"fmt"
	"slices"

	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

const (
	fittedFile    = "fitted.safetensors"
	fittedFormat  = "anisoflight-fitted"
	fittedVersion = "1"
)

// EncodeFitted returns the safetensors file of fitted coefficients. Its tensors, all of float64,
// are the nodes and, of each step, the weights in the coordinates of the schedule's statistics:
//
//	sigma  [N + 1]  noise levels, decreasing
//	alpha  [N, d]
//	beta   [N, d, h], of the evaluation, its state, the evaluation before, …
func EncodeFitted(s *solver.Fitted) ([]byte, error) {
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
	return encode(&safetensors.File{
		Metadata: map[string]string{"format": fittedFormat, "version": fittedVersion},
		Tensors: []safetensors.Tensor{
			safetensors.FromFloat64s("sigma", []int{n + 1}, s.Sigma),
			safetensors.FromFloat64s("alpha", []int{n, d}, slices.Concat(s.Alpha...)),
			safetensors.FromFloat64s("beta", []int{n, d, h}, flat),
		},
	})
}

// DecodeFitted reads what EncodeFitted wrote. What cannot be used is an *[Error].
func DecodeFitted(b []byte) (*solver.Fitted, error) {
	f, err := safetensors.Decode(b)
	if err != nil {
		return nil, inFile(fittedFile, err)
	}
	if f.Metadata["format"] != fittedFormat || f.Metadata["version"] != fittedVersion {
		return nil, &Error{File: fittedFile, Msg: "is of another format or version; want " + fittedFormat + " " +
			fittedVersion}
	}
	sizes := map[string][]int{}
	values := map[string][]float64{}
	for name, rank := range map[string]int{"sigma": 1, "alpha": 2, "beta": 3} {
		t := f.Lookup(name)
		if t == nil || t.DType != safetensors.F64 || len(t.Shape) != rank {
			return nil, &Error{File: fittedFile, Tensor: name, Msg: fmt.Sprintf("must be float64 of %d dimensions", rank)}
		}
		sizes[name] = t.Shape
		if values[name], err = t.Float64s(); err != nil {
			return nil, inFile(fittedFile, err)
		}
	}
	n, d, h := sizes["beta"][0], sizes["beta"][1], sizes["beta"][2]
	if n < 1 || d < 1 || h < 1 || sizes["sigma"][0] != n+1 || !slices.Equal(sizes["alpha"], []int{n, d}) {
		return nil, &Error{File: fittedFile, Tensor: "beta", Msg: fmt.Sprintf("has shape %v beside sigma %v and alpha %v",
			sizes["beta"], sizes["sigma"], sizes["alpha"])}
	}
	for name, v := range values {
		for _, x := range v {
			if x-x != 0 {
				return nil, &Error{File: fittedFile, Tensor: name, Msg: "must be finite"}
			}
		}
	}
	out := &solver.Fitted{Sigma: values["sigma"]}
	for i := range n {
		out.Alpha = append(out.Alpha, values["alpha"][i*d:(i+1)*d])
		out.Beta = append(out.Beta, slices.Collect(slices.Chunk(values["beta"][i*d*h:(i+1)*d*h], h)))
	}
	return out, nil
}
