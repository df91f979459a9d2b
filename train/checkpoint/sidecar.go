package checkpoint

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/anisoflight/anisoflight/schedule/start"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

// Sidecar is a kind of file next to a schedule: safetensors, with its format and version in the metadata. Its bytes
// depend on the value alone.
type Sidecar[T any] struct {
	name   string
	format string
	write  func(*T) *safetensors.File
	read   func(*sidecarFile) (*T, error)
}

const sidecarVersion = "1"

// Name returns the file's name in a schedule's folder.
func (k Sidecar[T]) Name() string { return k.name }

// Encode returns the file of a value.
func (k Sidecar[T]) Encode(v *T) ([]byte, error) {
	f := k.write(v)
	meta := map[string]string{"format": k.format, "version": sidecarVersion}
	maps.Copy(meta, f.Metadata)
	f.Metadata = meta
	return encode(f)
}

// Decode reads what Encode wrote. What cannot be used is an *[Error].
func (k Sidecar[T]) Decode(b []byte) (*T, error) {
	f, err := safetensors.Decode(b)
	if err != nil {
		return nil, inFile(k.name, err)
	}
	in := &sidecarFile{File: f, name: k.name}
	if f.Metadata["format"] != k.format || f.Metadata["version"] != sidecarVersion {
		return nil, in.failf("", "must be of format %s and version %s, got %q and %q", k.format, sidecarVersion,
			f.Metadata["format"], f.Metadata["version"])
	}
	v, err := k.read(in)
	if err = cmp.Or(in.err, err); err != nil {
		return nil, inFile(k.name, err)
	}
	return v, nil
}

// Hash returns the SHA-256 of a value's file, in hex.
func (k Sidecar[T]) Hash(v *T) (string, error) {
	b, err := k.Encode(v)
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), err
}

// add adds the file of a value, if there is one.
func (k Sidecar[T]) add(files map[string][]byte, v *T) error {
	if v == nil {
		return nil
	}
	b, err := k.Encode(v)
	files[k.name] = b
	return err
}

// part reads the file, if there is one.
func (k Sidecar[T]) part(v **T) part { return k.optionalPart(v, true) }

func (k Sidecar[T]) optionalPart(v **T, optional bool) part {
	return part{k.name, optional, func(b []byte) (err error) { *v, err = k.Decode(b); return err }}
}

// sidecarFile is a file that is read. Its methods note the first error; after it they return nothing.
type sidecarFile struct {
	*safetensors.File
	name string
	err  error
}

func (f *sidecarFile) failf(tensor, format string, args ...any) error {
	return &Error{File: f.name, Tensor: tensor, Msg: fmt.Sprintf(format, args...)}
}

func (f *sidecarFile) note(tensor, format string, args ...any) {
	f.err = cmp.Or(f.err, f.failf(tensor, format, args...))
}

// float64s returns the values of a tensor of finite float64 that must have this shape.
func (f *sidecarFile) float64s(name string, shape ...int) []float64 {
	t := f.Lookup(name)
	switch {
	case f.err != nil:
		return nil
	case t == nil:
		f.note(name, "is missing")
		return nil
	case t.DType != safetensors.F64 || !slices.Equal(t.Shape, shape):
		f.note(name, "must be F64 of the shape %v, got %s of %v", shape, t.DType, t.Shape)
		return nil
	}
	values, err := t.Float64s()
	f.err = err
	if slices.ContainsFunc(values, func(x float64) bool { return x-x != 0 }) {
		f.note(name, "must be finite")
	}
	return values
}

// axes returns the axes of the channels at each frequency of images [H, W, C], or in each band [B, C]; nil if the
// channels are the axes.
func (f *sidecarFile) axes(label string, size []int) []float64 {
	if f.Lookup("axes"+label) == nil {
		return nil
	}
	return f.float64s("axes"+label, append(slices.Clone(size), size[len(size)-1])...)
}

// labels returns the labels that have a tensor WHAT.LABEL, sorted, and the shape of the first, which has these
// dimensions.
func (f *sidecarFile) labels(what string, dimensions ...string) (labels, size []int) {
	for i := range f.Tensors {
		t := &f.Tensors[i]
		text, ok := strings.CutPrefix(t.Name, what+".")
		if !ok {
			continue
		}
		label, err := strconv.Atoi(text)
		if err != nil || len(t.Shape) != len(dimensions) {
			f.note(t.Name, "is not the %s [%s] of a label", what, strings.Join(dimensions, ", "))
			return nil, nil
		}
		if size == nil {
			size = t.Shape
		}
		labels = append(labels, label)
	}
	slices.Sort(labels)
	return labels, size
}

// StartFile is the file of a start. Its metadata say how it was estimated, and with which normalization of the data, if
// they have one. Its tensors, float64 except images, are those of each label, −1 for all images:
//
//	mean.LABEL      [H, W, C]     μ
//	images.LABEL    [1] int64     that it was estimated from, 0 for unknown
//	variance.LABEL  [H, W, C]     along the frequencies (u, v) of the orthonormal DCT-II and
//	                              the axes k of the channels there
//	axes.LABEL      [H, W, C, C]  axis k of frequency (u, v) in the channels; without it the
//	                              channels are the axes
var StartFile = Sidecar[start.Start]{"start.safetensors", "anisoflight-start", writeStart, readStart}

func writeStart(s *start.Start) *safetensors.File {
	set := s.Settings()
	f := &safetensors.File{Metadata: map[string]string{
		"covariance": set.Covariance, "shrinkage": strconv.FormatFloat(set.Shrinkage, 'g', -1, 64),
	}}
	if set.Units != nil {
		f.Metadata["normalization"] = set.Units.String()
	}
	h, w, c := s.Size()
	for _, label := range append([]int{start.Shared}, s.Labels()...) {
		l, suffix := s.Law(label), "."+strconv.Itoa(label)
		f.Tensors = append(f.Tensors, safetensors.FromFloat64s("mean"+suffix, []int{h, w, c}, l.Mean),
			safetensors.FromInt64s("images"+suffix, []int{1}, []int64{l.Images}),
			safetensors.FromFloat64s("variance"+suffix, []int{h, w, c}, l.Variance))
		if l.Axes != nil {
			f.Tensors = append(f.Tensors, safetensors.FromFloat64s("axes"+suffix, []int{h, w, c, c}, l.Axes))
		}
	}
	return f
}

func readStart(f *sidecarFile) (*start.Start, error) {
	set := start.Settings{Covariance: f.Metadata["covariance"]}
	var err error
	set.Shrinkage, err = strconv.ParseFloat(f.Metadata["shrinkage"], 64)
	if text := f.Metadata["normalization"]; err == nil && text != "" {
		err = json.Unmarshal([]byte(text), &set.Units)
	}
	if err != nil {
		return nil, f.failf("", "has metadata that cannot be read")
	}
	labels, size := f.labels("mean", "H", "W", "C")
	laws := map[int]*start.Law{}
	for _, label := range labels {
		laws[label] = f.law(size, "."+strconv.Itoa(label))
	}
	if f.err != nil {
		return nil, f.err
	}
	return start.New(set, laws)
}

// law reads the tensors of a label. [start.New] checks the values.
func (f *sidecarFile) law(size []int, label string) *start.Law {
	l := &start.Law{
		H: size[0], W: size[1], C: size[2], Mean: f.float64s("mean"+label, size...),
		Variance: f.float64s("variance"+label, size...), Axes: f.axes(label, size),
	}
	if t := f.Lookup("images" + label); t != nil {
		images, err := t.Int64s()
		if err != nil || len(images) != 1 || images[0] < 0 {
			f.note(t.Name, "must be one number that is not negative")
			return l
		}
		l.Images = images[0]
	}
	return l
}
