package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
)

// Write writes f to w. The bytes depend on f alone: tensors stand in the order given, metadata keys
// sorted. The header is padded so that data begins at a multiple of 8.
func Write(w io.Writer, f *File) error {
	out, err := NewWriter(w, f)
	if err != nil {
		return err
	}
	for i := range f.Tensors {
		if err := out.Bytes(f.Tensors[i].Data); err != nil {
			return err
		}
	}
	return out.Close()
}

// Writer writes a file tensor by tensor, so that no more than the one at hand need be in memory. Its file has the bytes
// that [Write] gives it.
type Writer struct {
	w     io.Writer
	left  []Tensor
	block []byte
}

// NewWriter writes the header of f, whose tensors need no Data.
func NewWriter(w io.Writer, f *File) (*Writer, error) {
	header, err := encodeHeader(f)
	if err != nil {
		return nil, err
	}
	_, err = w.Write(header)
	return &Writer{w: w, left: f.Tensors}, err
}

// Bytes writes the next tensor, which is all of data.
func (w *Writer) Bytes(data []byte) error {
	if err := w.next(len(data)); err != nil {
		return err
	}
	_, err := w.w.Write(data)
	return err
}

// Float32s writes the next tensor, an F32 one of these values.
func (w *Writer) Float32s(values []float32) error {
	return encoded(w, values, 4, func(to []byte, v float32) { binary.LittleEndian.PutUint32(to, math.Float32bits(v)) })
}

// Float64s writes the next tensor, an F64 one of these values.
func (w *Writer) Float64s(values []float64) error {
	return encoded(w, values, 8, func(to []byte, v float64) { binary.LittleEndian.PutUint64(to, math.Float64bits(v)) })
}

// Close reports whether all tensors of the header have been written.
func (w *Writer) Close() error {
	if len(w.left) > 0 {
		return &FormatError{w.left[0].Name, "is not written"}
	}
	return nil
}

// next takes the next tensor, which has that many bytes.
func (w *Writer) next(size int) error {
	if len(w.left) == 0 {
		return &FormatError{"", "a tensor too many"}
	}
	t := &w.left[0]
	if t.bytes() != size {
		return &FormatError{t.Name, fmt.Sprintf("%d bytes for %v %s", size, t.Shape, t.DType)}
	}
	w.left = w.left[1:]
	return nil
}

// encoded writes the next tensor in blocks.
func encoded[T any](w *Writer, values []T, size int, put func([]byte, T)) error {
	if err := w.next(size * len(values)); err != nil {
		return err
	}
	if w.block == nil {
		w.block = make([]byte, 1<<18)
	}
	for part := range slices.Chunk(values, len(w.block)/size) {
		for i, v := range part {
			put(w.block[size*i:], v)
		}
		if _, err := w.w.Write(w.block[:size*len(part)]); err != nil {
			return err
		}
	}
	return nil
}

// encodeHeader returns the length and the padded JSON header.
func encodeHeader(f *File) ([]byte, error) {
	var buf bytes.Buffer
	buf.Write(make([]byte, 8))
	buf.WriteByte('{')
	put := func(name string, v any) error {
		if buf.Len() > 9 {
			buf.WriteByte(',')
		}
		k, err := json.Marshal(name)
		if err != nil {
			return err
		}
		b, err := json.Marshal(v)
		if err != nil {
			return err
		}
		buf.Write(k)
		buf.WriteByte(':')
		buf.Write(b)
		return nil
	}
	if len(f.Metadata) > 0 {
		if err := put("__metadata__", f.Metadata); err != nil {
			return nil, err
		}
	}
	seen := map[string]bool{"__metadata__": true}
	var end uint64
	for i := range f.Tensors {
		t := &f.Tensors[i]
		if seen[t.Name] {
			return nil, &FormatError{t.Name, "name stands twice or is reserved"}
		}
		seen[t.Name] = true
		if t.DType.Size() == 0 || elements(t.Shape) < 0 || t.Data != nil && t.bytes() != len(t.Data) {
			return nil, &FormatError{t.Name, fmt.Sprintf("%d bytes for %v %s", len(t.Data), t.Shape, t.DType)}
		}
		shape := t.Shape
		if shape == nil {
			shape = []int{}
		}
		begin := end
		end += uint64(t.bytes())
		if err := put(t.Name, entry{t.DType, shape, [2]uint64{begin, end}}); err != nil {
			return nil, err
		}
	}
	buf.WriteByte('}')
	for buf.Len()%8 != 0 {
		buf.WriteByte(' ')
	}
	n := buf.Len() - 8
	if n > MaxHeader {
		return nil, &FormatError{"", fmt.Sprintf("header of %d bytes, at most %d are written", n, MaxHeader)}
	}
	out := buf.Bytes()
	binary.LittleEndian.PutUint64(out, uint64(n))
	return out, nil
}
