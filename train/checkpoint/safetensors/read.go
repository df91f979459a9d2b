package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
)

// entry is one tensor's description in the header.
type entry struct {
	DType   DType     `json:"dtype"`
	Shape   []int     `json:"shape"`
	Offsets [2]uint64 `json:"data_offsets"`
}

// ReadFile reads the file at path. A file that breaks the format is a [*FormatError].
func ReadFile(path string) (*File, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Decode(b)
}

// Decode parses a whole file held in memory. The tensors alias b.
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

// ReadHeader returns the tensors of the file at path without their data. What is wrong with the file, its size
// included, is a [*FormatError].
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

// Scan yields the tensors of a file of size bytes, in the order of their bytes, reading each when its turn comes; its
// Data is overwritten by the next. What is wrong with the file is a [*FormatError], and ends it.
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

// readInto reads n bytes, in the memory of data if it is large enough. More is taken as the bytes come: a header may
// promise what does not.
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

// describe reads the header of a file of size bytes, up to where the data begins, and returns the tensors without data.
// It has then been checked that they fill the file.
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
	f, entries, err := decodeHeader(header)
	if err != nil {
		return nil, err
	}
	return f, checkLayout(f.Tensors, entries, uint64(size)-8-n)
}

// checkLayout checks that the tensors fill that many bytes without gaps or overlap.
func checkLayout(tensors []Tensor, entries []entry, size uint64) error {
	var end uint64
	for i, e := range entries {
		t := &tensors[i]
		switch {
		case e.DType.Size() == 0:
			return &FormatError{t.Name, fmt.Sprintf("unknown dtype %q", e.DType)}
		case elements(e.Shape) < 0:
			return &FormatError{t.Name, fmt.Sprintf("impossible shape %v", e.Shape)}
		case e.Offsets[0] != end:
			return &FormatError{t.Name, fmt.Sprintf("begins at %d where the one before ends at %d: a gap or an overlap",
				e.Offsets[0], end)}
		case e.Offsets[1] < e.Offsets[0] || e.Offsets[1] > size:
			return &FormatError{t.Name, fmt.Sprintf("offsets %v in %d bytes of data: truncated", e.Offsets, size)}
		case e.Offsets[1]-e.Offsets[0] != uint64(t.bytes()):
			return &FormatError{t.Name, fmt.Sprintf("%d bytes for %v %s", e.Offsets[1]-e.Offsets[0], e.Shape, e.DType)}
		}
		end = e.Offsets[1]
	}
	if end != size {
		return &FormatError{"", fmt.Sprintf("%d bytes after the last tensor", size-end)}
	}
	return nil
}

// decodeHeader reads the JSON header token by token, because encoding/json lets the last of two equal names win.
// Tensors come back sorted by where their bytes begin.
func decodeHeader(b []byte) (*File, []entry, error) {
	bad := func(err error) (*File, []entry, error) {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, nil, &FormatError{"", "header: " + err.Error()}
	}
	dec := json.NewDecoder(bytes.NewReader(b))
	if tok, err := dec.Token(); err != nil {
		return bad(err)
	} else if tok != json.Delim('{') {
		return bad(errors.New("not a JSON object"))
	}
	type named struct {
		Tensor
		entry
	}
	f, seen := &File{}, map[string]bool{}
	var all []named
	for dec.More() {
		tok, err := dec.Token()
		if err != nil {
			return bad(err)
		}
		name, _ := tok.(string)
		if seen[name] {
			return bad(fmt.Errorf("name %q stands twice", name))
		}
		seen[name] = true
		if name == "__metadata__" {
			if err := dec.Decode(&f.Metadata); err != nil {
				return bad(err)
			}
			continue
		}
		var e entry
		if err := dec.Decode(&e); err != nil {
			return bad(fmt.Errorf("%q: %w", name, err))
		}
		if e.Shape == nil {
			e.Shape = []int{}
		}
		all = append(all, named{Tensor{Name: name, DType: e.DType, Shape: e.Shape}, e})
	}
	if _, err := dec.Token(); err != nil {
		return bad(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return bad(errors.New("more than one JSON value"))
	}
	slices.SortStableFunc(all, func(a, b named) int {
		if a.Offsets[0] != b.Offsets[0] {
			return int(min(max(int64(a.Offsets[0])-int64(b.Offsets[0]), -1), 1))
		}
		return int(min(max(int64(a.Offsets[1])-int64(b.Offsets[1]), -1), 1)) // empty tensors first
	})
	var entries []entry
	for _, n := range all {
		f.Tensors, entries = append(f.Tensors, n.Tensor), append(entries, n.entry)
	}
	return f, entries, nil
}
