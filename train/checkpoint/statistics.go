package checkpoint

import (
	"slices"
	"strconv"

	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/local"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

// StatisticsFile is that of a denoiser's statistics. Its tensors, all of float64, are the noise
// levels and, of each label, −1 for all images:
//
//	sigma           [P]           σ, increasing
//	gain.LABEL      [P, H, W, C]  q = E (D − x_0)²/σ² along the frequencies (u, v) of the
//	                              orthonormal DCT-II and the axes k of the channels there
//	variance.LABEL  [H, W, C]     of the data, along the same
//	axes.LABEL      [H, W, C, C]  axis k of frequency (u, v) in the channels; without it the
//	                              channels are the axes
var StatisticsFile = Sidecar[local.Statistics]{
	"statistics.safetensors", "anisoflight-statistics", writeStatistics, readStatistics,
}

func writeStatistics(s *local.Statistics) *safetensors.File {
	h, w, c := s.Dims()
	sigma := s.Sigma()
	f := &safetensors.File{
		Tensors: []safetensors.Tensor{safetensors.FromFloat64s("sigma", []int{len(sigma)}, sigma)},
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
	return f
}

func readStatistics(f *sidecarFile) (*local.Statistics, error) {
	labels, size, err := f.labels("variance")
	if err != nil {
		return nil, err
	}
	t := f.Lookup("sigma")
	if t == nil || len(t.Shape) != 1 || size == nil {
		return nil, f.failf("sigma", "and the variance of a label must be there")
	}
	sigma, err := f.float64s("sigma", t.Shape...)
	if err != nil {
		return nil, err
	}
	var rows []local.Row
	for _, label := range labels {
		of := "." + strconv.Itoa(label)
		var row local.Row
		if row.Variance, err = f.float64s("variance"+of, size...); err != nil {
			return nil, err
		}
		gain, err := f.float64s("gain"+of, append([]int{len(sigma)}, size...)...)
		if err != nil {
			return nil, err
		}
		row.Gain = slices.Collect(slices.Chunk(gain, max(len(row.Variance), 1)))
		if f.Lookup("axes"+of) != nil {
			if row.Axes, err = f.float64s("axes"+of, append(slices.Clone(size), size[2])...); err != nil {
				return nil, err
			}
		}
		rows = append(rows, row)
	}
	if slices.Equal(labels, []int{basis.Shared}) {
		labels = nil
	}
	return local.New(size[0], size[1], size[2], labels, sigma, rows)
}
