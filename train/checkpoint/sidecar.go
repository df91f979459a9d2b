package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

// Sidecar is a kind of file beside a schedule: safetensors, with its format and version in the
// metadata. Its bytes depend on the value alone.
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
	if err != nil {
		return nil, inFile(k.name, err)
	}
	return v, nil
}

// Hash returns the SHA-256 of a value's file, in hex.
func (k Sidecar[T]) Hash(v *T) (string, error) {
	b, err := k.Encode(v)
	return hashOf(b), err
}

// add adds the file of a value, where there is one.
func (k Sidecar[T]) add(files map[string][]byte, v *T) error {
	if v == nil {
		return nil
	}
	b, err := k.Encode(v)
	files[k.name] = b
	return err
}

// part reads the file, where there is one.
func (k Sidecar[T]) part(into **T) part {
	return part{k.name, true, func(b []byte) (err error) { *into, err = k.Decode(b); return err }}
}

// sidecarFile is a file that is read.
type sidecarFile struct {
	*safetensors.File
	name string
}

func (f *sidecarFile) failf(tensor, format string, args ...any) error {
	return &Error{File: f.name, Tensor: tensor, Msg: fmt.Sprintf(format, args...)}
}

// float64s returns the values of a tensor of float64 that must have this shape.
func (f *sidecarFile) float64s(name string, shape ...int) ([]float64, error) {
	t := f.Lookup(name)
	switch {
	case t == nil:
		return nil, f.failf(name, "is missing")
	case t.DType != safetensors.F64 || !slices.Equal(t.Shape, shape):
		return nil, f.failf(name, "must be F64 of the shape %v, got %s of %v", shape, t.DType, t.Shape)
	}
	return t.Float64s()
}

// labels returns the labels that have a tensor WHAT.LABEL, sorted, and the size [H, W, C] of the first one's.
func (f *sidecarFile) labels(what string) (labels, size []int, err error) {
	for i := range f.Tensors {
		t := &f.Tensors[i]
		text, ok := strings.CutPrefix(t.Name, what+".")
		if !ok {
			continue
		}
		label, err := strconv.Atoi(text)
		if err != nil || len(t.Shape) != 3 {
			return nil, nil, f.failf(t.Name, "is not the %s [H, W, C] of a label", what)
		}
		if size == nil {
			size = t.Shape
		}
		labels = append(labels, label)
	}
	slices.Sort(labels)
	return labels, size, nil
}

func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
