package checkpoint

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

// vectorsPrefix heads the tensors of a basis file: one [k, H, W] of float64 for each
// label, −1 for a shared basis.
const vectorsPrefix = "vectors."

// EncodeBasis returns the safetensors file of a basis that has vectors.
func EncodeBasis(b *basis.Basis) ([]byte, error) {
	labels := b.Classes()
	if labels == nil {
		labels = []int{basis.Shared}
	}
	f := &safetensors.File{}
	for _, label := range labels {
		v, err := b.Vectors(label)
		if err != nil {
			return nil, err
		}
		shape := []int{len(v) / (b.H() * b.W()), b.H(), b.W()}
		f.Tensors = append(f.Tensors, safetensors.FromFloat64s(vectorsPrefix+strconv.Itoa(label), shape, v))
	}
	return encode(f)
}

// DecodeBasis reads what EncodeBasis wrote; the vectors must be orthonormal. What
// cannot be used is an *[Error].
func DecodeBasis(b []byte) (*basis.Basis, error) {
	f, err := safetensors.Decode(b)
	if err != nil {
		return nil, inFile(basisFile, err)
	}
	fail := func(tensor, msg string) error { return &Error{File: basisFile, Tensor: tensor, Msg: msg} }
	vectors := map[int][][]float64{}
	var size []int // [H, W]
	for i := range f.Tensors {
		t := &f.Tensors[i]
		text, ok := strings.CutPrefix(t.Name, vectorsPrefix)
		label, err := strconv.Atoi(text)
		if !ok || err != nil || len(t.Shape) != 3 || slices.Min(t.Shape) < 1 {
			return nil, fail(t.Name, "is not the vectors [k, H, W] of a label")
		}
		if size == nil {
			size = t.Shape[1:]
		}
		if !slices.Equal(size, t.Shape[1:]) {
			return nil, fail(t.Name, "is made for another image size than the one before")
		}
		values, err := t.Float64s()
		if err != nil {
			return nil, inFile(basisFile, err)
		}
		for v := range slices.Chunk(values, size[0]*size[1]) {
			vectors[label] = append(vectors[label], v)
		}
	}
	if size == nil {
		return nil, fail("", "it holds no vectors")
	}
	out, err := basis.Dense(size[0], size[1], vectors)
	return out, inFile(basisFile, err)
}

func encode(f *safetensors.File) ([]byte, error) {
	var out bytes.Buffer
	err := safetensors.Write(&out, f)
	return out.Bytes(), err
}

func decodeSchedule(b []byte) (*schedule.Schedule, error) {
	return schedule.Decode(bytes.NewReader(b))
}

// addSchedule adds the files of a schedule and its basis, as far as there are any.
func addSchedule(files map[string][]byte, s *schedule.Schedule, b *basis.Basis) error {
	if s != nil {
		text, err := json.Marshal(s)
		if err != nil {
			return inFile(scheduleFile, err)
		}
		files[scheduleFile] = append(text, '\n')
	}
	if b != nil && b.Kind() == basis.KindDense {
		out, err := EncodeBasis(b)
		if err != nil {
			return inFile(basisFile, err)
		}
		files[basisFile] = out
	}
	return nil
}
