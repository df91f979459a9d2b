package safetensors

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Write writes f to w. The bytes depend on f alone: tensors stand in the order given, metadata keys sorted. The header
// is padded so that data begins at a multiple of 8.
func Write(w io.Writer, f *File) error {
	header, err := encodeHeader(f)
	if err != nil {
		return err
	}
	_, err = w.Write(header)
	var encoded []byte // room for a piece of any tensor
	for i := range f.Tensors {
		if err == nil {
			encoded, err = f.Tensors[i].write(w, encoded)
		}
	}
	return err
}

func (t *Tensor) write(w io.Writer, encoded []byte) ([]byte, error) {
	switch values := t.values.(type) {
	case []float32:
		return writeValues(w, values, encoded)
	case []float64:
		return writeValues(w, values, encoded)
	case []int64:
		return writeValues(w, values, encoded)
	}
	_, err := w.Write(t.Data)
	return encoded, err
}

// writeValues writes values piece by piece, in the memory of encoded if it is large enough: they are never all copied.
func writeValues[E float32 | float64 | int64](w io.Writer, values []E, encoded []byte) ([]byte, error) {
	const piece = 1 << 15
	var err error
	for part := range slices.Chunk(values, piece) {
		if encoded, err = binary.Append(encoded[:0], binary.LittleEndian, part); err != nil {
			return encoded, err
		}
		if _, err = w.Write(encoded); err != nil {
			return encoded, err
		}
	}
	return encoded, nil
}

// size returns the bytes that the tensor has.
func (t *Tensor) size() int {
	if t.values != nil {
		return binary.Size(t.values)
	}
	return len(t.Data)
}

// encodeHeader returns the length and the padded JSON header.
func encodeHeader(f *File) ([]byte, error) {
	var members []string
	add := func(name string, v any) error {
		key, keyErr := json.Marshal(name)
		value, err := json.Marshal(v)
		members = append(members, string(key)+":"+string(value))
		return errors.Join(keyErr, err)
	}
	if len(f.Metadata) > 0 {
		if err := add(metadataName, f.Metadata); err != nil {
			return nil, err
		}
	}
	seen := map[string]bool{metadataName: true}
	var end uint64
	for _, t := range f.Tensors {
		if seen[t.Name] {
			return nil, &FormatError{t.Name, "name is a duplicate or reserved"}
		}
		seen[t.Name] = true
		if sizes[t.DType] == 0 || elements(t.Shape) < 0 || t.bytes() != t.size() {
			return nil, &FormatError{t.Name, fmt.Sprintf("%d bytes for %v %s", t.size(), t.Shape, t.DType)}
		}
		begin := end
		end += uint64(t.bytes())
		shape := append([]int{}, t.Shape...) // [] and not null
		if err := add(t.Name, entry{t.DType, shape, [2]uint64{begin, end}}); err != nil {
			return nil, err
		}
	}
	text := "{" + strings.Join(members, ",") + "}"
	if padded := (len(text) + 7) / 8 * 8; padded > MaxHeader {
		return nil, &FormatError{"", fmt.Sprintf("header of %d bytes, at most %d are written", padded, MaxHeader)}
	}
	text += strings.Repeat(" ", -len(text)&7)
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(text))), text...), nil
}
