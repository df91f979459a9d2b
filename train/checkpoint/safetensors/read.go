package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Decode parses a whole file held in memory. The tensors alias b. A file that breaks the format is a [*FormatError].
func Decode(b []byte) (*File, error) {
	r := bytes.NewReader(b)
	f, err := describe(r, int64(len(b)))
	if err != nil {
		return nil, err
	}
	data := b[len(b)-r.Len():]
	for i, t := range f.Tensors {
		size := t.bytes()
		f.Tensors[i].Data, data = data[:size:size], data[size:]
	}
	return f, nil
}

// ReadHeader returns the tensors of the file at path without their data. A file that breaks the format, or is of
// another size, is a [*FormatError].
func ReadHeader(path string) (*File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	return describe(file, info.Size())
}

// Scan yields the tensors of a file of size bytes in the order of their bytes, one in memory at a time: the next
// overwrites Data. It ends with a [*FormatError] if the file breaks the format.
func Scan(r io.Reader, size int64) iter.Seq2[Tensor, error] {
	return func(yield func(Tensor, error) bool) {
		f, err := describe(r, size)
		if err != nil {
			yield(Tensor{}, err)
			return
		}
		var data []byte
		for _, t := range f.Tensors {
			if data, err = readInto(data, r, t.bytes()); err != nil {
				yield(Tensor{}, err)
				return
			}
			t.Data = data
			if !yield(t, nil) {
				return
			}
		}
	}
}

// readInto reads n bytes, in the memory of data if it is large enough. It allocates as bytes come, because a header may
// promise more than there are.
func readInto(data []byte, r io.Reader, n int) ([]byte, error) {
	data = data[:0]
	for len(data) < n {
		if len(data) == cap(data) {
			data = slices.Grow(data, min(max(len(data), 1<<20), n-len(data)))
		}
		got, err := io.ReadFull(r, data[len(data):min(cap(data), n)])
		if data = data[:len(data)+got]; err != nil {
			return data, err
		}
	}
	return data, nil
}

// describe reads the header of a file of size bytes, and returns the tensors without data. It checks that they fill the
// file.
func describe(r io.Reader, size int64) (*File, error) {
	if size < 8 {
		return nil, &FormatError{"", fmt.Sprintf("%d bytes are too few for a file", size)}
	}
	var prefix [8]byte
	if _, err := io.ReadFull(r, prefix[:]); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(prefix[:])
	if n > MaxHeader {
		return nil, &FormatError{"", fmt.Sprintf("header of %d bytes, at most %d are read", n, MaxHeader)}
	}
	if uint64(size-8) < n {
		return nil, &FormatError{"", fmt.Sprintf("header of %d bytes in a file of %d: truncated", n, size)}
	}
	header := make([]byte, n)
	if _, err := io.ReadFull(r, header); err != nil {
		return nil, err
	}
	f, err := decodeHeader(header)
	if err != nil {
		return nil, &FormatError{"", "header: " + err.Error()}
	}
	return f, checkLayout(f.Tensors, uint64(size)-8-n)
}

// decodeHeader returns the tensors of a header in the order of their bytes. It refuses duplicate names.
func decodeHeader(header []byte) (*File, error) {
	if jsontext.Value(header).Kind() != '{' {
		return nil, errors.New("not a JSON object")
	}
	var members map[string]jsontext.Value
	if err := json.Unmarshal(header, &members); err != nil {
		return nil, err
	}
	f := &File{}
	for name, value := range members {
		if name == metadataName {
			if err := json.Unmarshal(value, &f.Metadata); err != nil {
				return nil, err
			}
			continue
		}
		e := entry{Shape: []int{}}
		if err := json.Unmarshal(value, &e); err != nil {
			return nil, fmt.Errorf("%q: %w", name, err)
		}
		f.Tensors = append(f.Tensors, Tensor{Name: name, DType: e.DType, Shape: e.Shape, offsets: e.Offsets})
	}
	slices.SortFunc(f.Tensors, func(a, b Tensor) int {
		return cmp.Or(slices.Compare(a.offsets[:], b.offsets[:]), cmp.Compare(a.Name, b.Name)) // empty tensors first
	})
	return f, nil
}

// checkLayout checks that the tensors fill that many bytes without gaps or overlap.
func checkLayout(tensors []Tensor, size uint64) error {
	var last uint64
	for _, t := range tensors {
		begin, end := t.offsets[0], t.offsets[1]
		fault := ""
		switch {
		case sizes[t.DType] == 0:
			fault = fmt.Sprintf("unknown dtype %q", t.DType)
		case elements(t.Shape) < 0:
			fault = fmt.Sprintf("impossible shape %v", t.Shape)
		case begin != last:
			fault = fmt.Sprintf("begins at %d where the one before ends at %d: a gap or an overlap", begin, last)
		case end < begin || end > size:
			fault = fmt.Sprintf("offsets %v in %d bytes of data: truncated", t.offsets, size)
		case end-begin != uint64(t.bytes()):
			fault = fmt.Sprintf("%d bytes for %v %s", end-begin, t.Shape, t.DType)
		}
		if fault != "" {
			return &FormatError{t.Name, fault}
		}
		last = end
	}
	if last != size {
		return &FormatError{"", fmt.Sprintf("%d bytes after the last tensor", size-last)}
	}
	return nil
}
