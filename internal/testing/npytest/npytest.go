// Package npytest reads the arrays that tests find in NumPy's files.
package npytest

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/train/data"
)

var header = regexp.MustCompile(
	`(?s)^.NUMPY\x01\x00..{'descr': '(.*)', 'fortran_order': False, 'shape': \((.*?),?\), } *\n`)

// ReadNPZ returns the arrays of a .npz file by name.
func ReadNPZ(tb testing.TB, path string) map[string]*data.Array {
	tb.Helper()
	z, err := zip.OpenReader(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer z.Close()
	arrays := map[string]*data.Array{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			tb.Fatal(err)
		}
		file, err := io.ReadAll(r)
		if err != nil {
			tb.Fatal(err)
		}
		if arrays[strings.TrimSuffix(f.Name, ".npy")], err = decode(file); err != nil {
			tb.Fatalf("%s: %v", f.Name, err)
		}
	}
	return arrays
}

func decode(file []byte) (*data.Array, error) {
	head := header.FindSubmatch(file)
	if head == nil {
		return nil, fmt.Errorf("a header that is not expected: %q", file[:min(len(file), 128)])
	}
	a := &data.Array{}
	if err := json.Unmarshal([]byte("["+string(head[2])+"]"), &a.Shape); err != nil {
		return nil, err
	}
	n := 1
	for _, d := range a.Shape {
		n *= d
	}
	switch string(head[1]) {
	case "|u1":
		a.Values = make([]uint8, n)
	case "<i4":
		a.Values = make([]int32, n)
	case "<u8":
		a.Values = make([]uint64, n)
	case "<f4":
		a.Values = make([]float32, n)
	default:
		return nil, fmt.Errorf("values of type %q", head[1])
	}
	return a, binary.Read(bytes.NewReader(file[len(head[0]):]), binary.LittleEndian, a.Values)
}
