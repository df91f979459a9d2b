package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// entry is one tensor's description in the header.
type entry struct {
	DType   DType     `json:"dtype"`
	Shape   []int     `json:"shape"`
	Offsets [2]uint64 `json:"data_offsets"`
}

// ReadFile reads the file at path. A file that breaks the format gives a [*FormatError].
func ReadFile(path string) (*File, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return Decode(b)
}

// Decode parses a whole file held in memory. The tensors alias b.
func Decode(b []byte) (*File, error) {
	if len(b) < 8 {
		return nil, &FormatError{"", fmt.Sprintf("%d bytes are too few for a file", len(b))}
	}
	n := binary.LittleEndian.Uint64(b)
	if n > MaxHeader {
		return nil, &FormatError{"", fmt.Sprintf("header of %d bytes, at most %d are read", n, MaxHeader)}
	}
	if uint64(len(b)-8) < n {
		return nil, &FormatError{"", fmt.Sprintf("header of %d bytes in a file of %d: truncated", n, len(b))}
	}
	f, entries, err := decodeHeader(b[8 : 8+n])
	if err != nil {
		return nil, err
	}
	data := b[8+n:]
	var end uint64
	for i, e := range entries {
		t := &f.Tensors[i]
		count, size := elements(e.Shape), e.DType.Size()
		switch {
		case size == 0:
			return nil, &FormatError{t.Name, fmt.Sprintf("unknown dtype %q", e.DType)}
		case count < 0:
			return nil, &FormatError{t.Name, fmt.Sprintf("impossible shape %v", e.Shape)}
		case e.Offsets[0] != end:
			return nil, &FormatError{t.Name, fmt.Sprintf("begins at %d where the one before ends at %d: a gap or an overlap", e.Offsets[0], end)}
		case e.Offsets[1] < e.Offsets[0] || e.Offsets[1] > uint64(len(data)):
			return nil, &FormatError{t.Name, fmt.Sprintf("offsets %v in %d bytes of data: truncated", e.Offsets, len(data))}
		case e.Offsets[1]-e.Offsets[0] != uint64(count*size):
			return nil, &FormatError{t.Name, fmt.Sprintf("%d bytes for %v %s", e.Offsets[1]-e.Offsets[0], e.Shape, e.DType)}
		}
		end = e.Offsets[1]
		t.Data = data[e.Offsets[0]:end:end]
	}
	if end != uint64(len(data)) {
		return nil, &FormatError{"", fmt.Sprintf("%d bytes after the last tensor", uint64(len(data))-end)}
	}
	return f, nil
}

// decodeHeader reads the JSON header token by token, because encoding/json lets the last of two equal
// names win. Tensors come back sorted by where their bytes begin.
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
