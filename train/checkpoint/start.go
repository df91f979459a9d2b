package checkpoint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/anisoflight/anisoflight/schedule/start"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

const (
	startFormat  = "anisoflight-start"
	startVersion = "1"
)

// EncodeStart returns the safetensors file of a start. Its metadata say how it was
// estimated; its tensors, all of float64 but images, are of each label, −1 for all images:
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
//
// The bytes depend on the start alone.
func EncodeStart(s *start.Start) ([]byte, error) {
	set := s.Settings()
	f := &safetensors.File{Metadata: map[string]string{
		"format": startFormat, "version": startVersion, "covariance": set.Covariance,
		"shrinkage": strconv.FormatFloat(set.Shrinkage, 'g', -1, 64),
	}}
	if set.Rank > 0 {
		f.Metadata["rank"] = strconv.Itoa(set.Rank)
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
	return encode(f)
}

// DecodeStart reads what EncodeStart wrote. What cannot be used is an *[Error].
func DecodeStart(b []byte) (*start.Start, error) {
	f, err := safetensors.Decode(b)
	if err != nil {
		return nil, inFile(startFile, err)
	}
	fail := func(tensor, msg string) error { return &Error{File: startFile, Tensor: tensor, Msg: msg} }
	if f.Metadata["format"] != startFormat || f.Metadata["version"] != startVersion {
		return nil, fail("", "is not a start: its format and version must be "+startFormat+" "+startVersion)
	}
	set, err := startSettings(f.Metadata)
	if err != nil {
		return nil, fail("", "has metadata that cannot be read")
	}
	laws := map[int]*start.Law{}
	for i := range f.Tensors {
		t := &f.Tensors[i]
		text, ok := strings.CutPrefix(t.Name, "mean.")
		if !ok {
			continue
		}
		label, err := strconv.Atoi(text)
		if err != nil || len(t.Shape) != 3 {
			return nil, fail(t.Name, "is not the mean [H, W, C] of a label")
		}
		if laws[label], err = decodeLaw(f, t.Shape, text); err != nil {
			return nil, inFile(startFile, err)
		}
	}
	s, err := start.New(set, laws)
	return s, inFile(startFile, err)
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
	if text := meta["cuts"]; text != "" {
		set.Cuts, err = splitLabels(text)
	}
	return set, err
}

// decodeLaw reads the tensors of a label. Laws check their values themselves.
func decodeLaw(f *safetensors.File, size []int, label string) (*start.Law, error) {
	l := &start.Law{H: size[0], W: size[1], C: size[2]}
	fail := func(tensor, msg string) error { return &Error{File: startFile, Tensor: tensor, Msg: msg} }
	read := func(name string, needed bool, shape []int) ([]float64, error) {
		name += "." + label
		t := f.Lookup(name)
		switch {
		case t == nil && needed:
			return nil, fail(name, "is missing")
		case t == nil:
			return nil, nil
		case t.DType != safetensors.F64 || !slices.Equal(shape, t.Shape):
			return nil, fail(name, fmt.Sprintf("must be F64 of the shape %v, got %s of %v", shape, t.DType, t.Shape))
		}
		return t.Float64s()
	}
	rank := 0
	if t := f.Lookup("vectors." + label); t != nil && len(t.Shape) == 4 {
		rank = t.Shape[0]
	}
	var err error
	if l.Mean, err = read("mean", true, size); err != nil {
		return nil, err
	}
	if l.Vectors, err = read("vectors", false, append([]int{rank}, size...)); err != nil {
		return nil, err
	}
	shape := size
	if l.Vectors != nil {
		shape = []int{rank}
		rest, err := read("rest", true, []int{1})
		if err != nil {
			return nil, err
		}
		l.Rest = rest[0]
	}
	if l.Variance, err = read("variance", true, shape); err != nil {
		return nil, err
	}
	if l.Axes, err = read("axes", false, append(slices.Clone(size), size[2])); err != nil {
		return nil, err
	}
	if t := f.Lookup("images." + label); t != nil {
		images, err := t.Int64s()
		if err != nil || len(images) != 1 || images[0] < 0 {
			return nil, &Error{File: startFile, Tensor: t.Name, Msg: "must be one number that is not negative"}
		}
		l.Images = images[0]
	}
	return l, nil
}

// HashStart returns the SHA-256 of a start's file, in hex.
func HashStart(s *start.Start) (string, error) {
	b, err := EncodeStart(s)
	return hashOf(b), err
}
