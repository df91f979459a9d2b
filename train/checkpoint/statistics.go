package checkpoint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/local"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

const (
	statisticsFile    = "statistics.safetensors"
	statisticsFormat  = "anisoflight-statistics"
	statisticsVersion = "1"
)

// EncodeStatistics returns the safetensors file of a denoiser's statistics. Its tensors, all of
// float64, are the noise levels and, of each label, −1 for all images:
//
//	sigma           [P]           σ, increasing
//	gain.LABEL      [P, H, W, C]  q = E (D − x_0)²/σ² along the frequencies (u, v) of the
//	                              orthonormal DCT-II and the axes k of the channels there
//	variance.LABEL  [H, W, C]     of the data, along the same
//	axes.LABEL      [H, W, C, C]  axis k of frequency (u, v) in the channels; without it the
//	                              channels are the axes
//
// The bytes depend on the statistics alone.
func EncodeStatistics(s *local.Statistics) ([]byte, error) {
	h, w, c := s.Dims()
	sigma := s.Sigma()
	f := &safetensors.File{
		Metadata: map[string]string{"format": statisticsFormat, "version": statisticsVersion},
		Tensors:  []safetensors.Tensor{safetensors.FromFloat64s("sigma", []int{len(sigma)}, sigma)},
	}
	labels := s.Labels()
	if labels == nil {
		labels = []int{basis.Shared}
	}
	for r, label := range labels {
		row, of := s.At(r), "."+strconv.Itoa(label)
		f.Tensors = append(f.Tensors,
			safetensors.FromFloat64s("gain"+of, []int{len(sigma), h, w, c}, slices.Concat(row.Gain...)),
			safetensors.FromFloat64s("variance"+of, []int{h, w, c}, row.Variance))
		if row.Axes != nil {
			f.Tensors = append(f.Tensors, safetensors.FromFloat64s("axes"+of, []int{h, w, c, c}, row.Axes))
		}
	}
	return encode(f)
}

// DecodeStatistics reads what EncodeStatistics wrote. What cannot be used is an *[Error].
func DecodeStatistics(b []byte) (*local.Statistics, error) {
	f, err := safetensors.Decode(b)
	if err != nil {
		return nil, inFile(statisticsFile, err)
	}
	if f.Metadata["format"] != statisticsFormat || f.Metadata["version"] != statisticsVersion {
		return nil, &Error{File: statisticsFile, Msg: fmt.Sprintf("is of format %q and version %q; want %s and %s",
			f.Metadata["format"], f.Metadata["version"], statisticsFormat, statisticsVersion)}
	}
	read := func(name string, shape ...int) ([]float64, error) {
		t := f.Lookup(name)
		switch {
		case t == nil:
			return nil, &Error{File: statisticsFile, Tensor: name, Msg: "is missing"}
		case t.DType != safetensors.F64 || !slices.Equal(t.Shape, shape):
			return nil, &Error{
				File: statisticsFile, Tensor: name,
				Msg: fmt.Sprintf("is of type %s and shape %v; want F64 of %v", t.DType, t.Shape, shape),
			}
		}
		return t.Float64s()
	}
	var labels []int
	var size []int
	for i := range f.Tensors {
		text, ok := strings.CutPrefix(f.Tensors[i].Name, "variance.")
		if !ok {
			continue
		}
		label, err := strconv.Atoi(text)
		if err != nil || len(f.Tensors[i].Shape) != 3 {
			return nil, &Error{File: statisticsFile, Tensor: f.Tensors[i].Name, Msg: "is not the variance [H, W, C] of a label"}
		}
		labels, size = append(labels, label), f.Tensors[i].Shape
	}
	t := f.Lookup("sigma")
	if t == nil || len(t.Shape) != 1 || size == nil {
		return nil, &Error{File: statisticsFile, Tensor: "sigma", Msg: "and the variance of a label must be there"}
	}
	sigma, err := read("sigma", t.Shape...)
	if err != nil {
		return nil, err
	}
	slices.Sort(labels)
	var rows []local.Row
	for _, label := range labels {
		of := "." + strconv.Itoa(label)
		var row local.Row
		if row.Variance, err = read("variance"+of, size...); err != nil {
			return nil, err
		}
		gain, err := read("gain"+of, append([]int{len(sigma)}, size...)...)
		if err != nil {
			return nil, err
		}
		row.Gain = slices.Collect(slices.Chunk(gain, max(len(row.Variance), 1)))
		if f.Lookup("axes"+of) != nil {
			if row.Axes, err = read("axes"+of, append(slices.Clone(size), size[2])...); err != nil {
				return nil, err
			}
		}
		rows = append(rows, row)
	}
	if slices.Equal(labels, []int{basis.Shared}) {
		labels = nil
	}
	s, err := local.New(size[0], size[1], size[2], labels, sigma, rows)
	return s, inFile(statisticsFile, err)
}

// HashStatistics returns the SHA-256 of the statistics' file, in hex.
func HashStatistics(s *local.Statistics) (string, error) {
	b, err := EncodeStatistics(s)
	return hashOf(b), err
}
