package checkpoint

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/anisoflight/anisoflight/schedule/start"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

// StartFile is that of a start. Its metadata say how it was estimated, and through which
// normalization the data were seen where they have one; its tensors, all of
// float64 but images, are of each label, −1 for all images:
//
//	mean.LABEL      [H, W, C]     μ
//	images.LABEL    [1] int64     that it was estimated from, 0 for unknown
//	variance.LABEL  [H, W, C]     along the frequencies (u, v) of the orthonormal DCT-II and
//	                              the axes k of the channels there
//	axes.LABEL      [H, W, C, C]  axis k of frequency (u, v) in the channels; without it the
//	                              channels are the axes
//
// or, for components, in place of the last two
//
//	variance.LABEL  [r]           along the vectors
//	vectors.LABEL   [r, H, W, C]  orthonormal
//	rest.LABEL      [1]           variance along every other direction
var StartFile = Sidecar[start.Start]{"start.safetensors", "anisoflight-start", writeStart, readStart}

func writeStart(s *start.Start) *safetensors.File {
	set := s.Settings()
	f := &safetensors.File{Metadata: map[string]string{
		"covariance": set.Covariance, "shrinkage": strconv.FormatFloat(set.Shrinkage, 'g', -1, 64),
	}}
	if set.Rank > 0 {
		f.Metadata["rank"] = strconv.Itoa(set.Rank)
	}
	if set.Units != nil {
		f.Metadata["normalization"] = set.Units.String()
	}
	if set.Cuts != nil {
		f.Metadata["cuts"] = joinLabels(set.Cuts)
	}
	h, w, c := s.Size()
	for _, label := range append([]int{start.Shared}, s.Labels()...) {
		l, of := s.Law(label), "."+strconv.Itoa(label)
		f.Tensors = append(f.Tensors, safetensors.FromFloat64s("mean"+of, []int{h, w, c}, l.Mean),
			safetensors.FromInt64s("images"+of, []int{1}, []int64{l.Images}))
		if l.Vectors != nil {
			r := len(l.Variance)
			f.Tensors = append(f.Tensors, safetensors.FromFloat64s("variance"+of, []int{r}, l.Variance),
				safetensors.FromFloat64s("vectors"+of, []int{r, h, w, c}, l.Vectors),
				safetensors.FromFloat64s("rest"+of, []int{1}, []float64{l.Rest}))
			continue
		}
		f.Tensors = append(f.Tensors, safetensors.FromFloat64s("variance"+of, []int{h, w, c}, l.Variance))
		if l.Axes != nil {
			f.Tensors = append(f.Tensors, safetensors.FromFloat64s("axes"+of, []int{h, w, c, c}, l.Axes))
		}
	}
	return f
}

func readStart(f *sidecarFile) (*start.Start, error) {
	set, err := startSettings(f.Metadata)
	if err != nil {
		return nil, f.failf("", "has metadata that cannot be read")
	}
	labels, size, err := f.labels("mean")
	if err != nil {
		return nil, err
	}
	laws := map[int]*start.Law{}
	for _, label := range labels {
		if laws[label], err = f.law(size, "."+strconv.Itoa(label)); err != nil {
			return nil, err
		}
	}
	return start.New(set, laws)
}

func startSettings(meta map[string]string) (set start.Settings, err error) {
	set.Covariance = meta["covariance"]
	if set.Shrinkage, err = strconv.ParseFloat(meta["shrinkage"], 64); err != nil {
		return set, err
	}
	if text := meta["rank"]; text != "" {
		if set.Rank, err = strconv.Atoi(text); err != nil {
			return set, err
		}
	}
	if text := meta["normalization"]; text != "" {
		if err := json.Unmarshal([]byte(text), &set.Units); err != nil {
			return set, err
		}
	}
	if text := meta["cuts"]; text != "" {
		set.Cuts, err = splitLabels(text)
	}
	return set, err
}

// law reads the tensors of a label. Laws check their values themselves.
func (f *sidecarFile) law(size []int, of string) (*start.Law, error) {
	l := &start.Law{H: size[0], W: size[1], C: size[2]}
	var err error
	if l.Mean, err = f.float64s("mean"+of, size...); err != nil {
		return nil, err
	}
	shape := size
	if t := f.Lookup("vectors" + of); t != nil && len(t.Shape) > 0 {
		shape = t.Shape[:1]
		if l.Vectors, err = f.float64s(t.Name, append(slices.Clone(shape), size...)...); err != nil {
			return nil, err
		}
		rest, err := f.float64s("rest"+of, 1)
		if err != nil {
			return nil, err
		}
		l.Rest = rest[0]
	}
	if l.Variance, err = f.float64s("variance"+of, shape...); err != nil {
		return nil, err
	}
	if f.Lookup("axes"+of) != nil {
		if l.Axes, err = f.float64s("axes"+of, append(slices.Clone(size), size[2])...); err != nil {
			return nil, err
		}
	}
	if t := f.Lookup("images" + of); t != nil {
		images, err := t.Int64s()
		if err != nil || len(images) != 1 || images[0] < 0 {
			return nil, f.failf(t.Name, "must be one number that is not negative")
		}
		l.Images = images[0]
	}
	return l, nil
}
