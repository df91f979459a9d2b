package data

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Array is one NumPy array: row-major values, []uint8, []int32, []uint64 or []float32.
type Array struct {
	Shape  []int
	Values any
}

// magic opens every .npy file; two bytes of version follow.
const magic = "\x93NUMPY"

// maxArray bounds the bytes an array may claim before they are read.
const maxArray = 1 << 36

var (
	reDescr   = regexp.MustCompile(`'descr'\s*:\s*'([^']*)'`)
	reFortran = regexp.MustCompile(`'fortran_order'\s*:\s*(True|False)`)
	reShape   = regexp.MustCompile(`'shape'\s*:\s*\(([0-9,\s]*)\)`)
)

// readLabels reads what a Writer has stored: an array [n] of int32.
func readLabels(file []byte) ([]int32, error) {
	r := bytes.NewReader(file)
	descr, shape, err := readNPYHeader(r)
	if err == nil && (descr != "<i4" || len(shape) != 1 || r.Len() != 4*shape[0]) {
		err = fmt.Errorf("labels of type %q and shape %v in %d bytes; they are [n] of int32", descr, shape, r.Len())
	}
	if err != nil {
		return nil, &Error{File: labelsFile, Row: -1, Msg: err.Error()}
	}
	labels := make([]int32, shape[0])
	return labels, binary.Read(r, binary.LittleEndian, labels)
}

// product returns the number of values of a shape.
func product(shape []int) (int, error) {
	n := 1
	for _, d := range shape {
		if d > 0 && n > maxArray/d {
			return 0, fmt.Errorf("shape %v is too large", shape)
		}
		n *= d
	}
	return n, nil
}

// readNPYHeader reads a .npy file up to its values: their type, such as "<f4", and shape.
func readNPYHeader(r io.Reader) (descr string, shape []int, err error) {
	head := make([]byte, 8)
	if _, err := io.ReadFull(r, head); err != nil || string(head[:6]) != magic {
		return "", nil, errors.New("not a .npy file")
	}
	size := make([]byte, 2)
	if head[6] >= 2 {
		size = make([]byte, 4)
	}
	if _, err := io.ReadFull(r, size); err != nil {
		return "", nil, err
	}
	n := binary.LittleEndian.Uint32(append(size, 0, 0)[:4])
	if n > 1<<20 {
		return "", nil, fmt.Errorf("a header of %d bytes", n)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return "", nil, err
	}
	d, f, s := reDescr.FindSubmatch(text), reFortran.FindSubmatch(text), reShape.FindSubmatch(text)
	if d == nil || f == nil || s == nil {
		return "", nil, fmt.Errorf("header %q", text)
	}
	if string(f[1]) == "True" {
		return "", nil, errors.New("the array is in Fortran order; save numpy.ascontiguousarray of it")
	}
	shape = []int{}
	for field := range strings.SplitSeq(string(s[1]), ",") {
		if field = strings.TrimSpace(field); field == "" {
			continue
		}
		dim, err := strconv.Atoi(field)
		if err != nil {
			return "", nil, err
		}
		shape = append(shape, dim)
	}
	return string(d[1]), shape, nil
}

// WriteNPY writes an array in NumPy's .npy format, version 1, as numpy.save does.
func WriteNPY(w io.Writer, a *Array) error {
	var descr string
	switch a.Values.(type) {
	case []uint8:
		descr = "|u1"
	case []int32:
		descr = "<i4"
	case []uint64:
		descr = "<u8"
	case []float32:
		descr = "<f4"
	default:
		return fmt.Errorf("npy: values of type %T are not written", a.Values)
	}
	if _, err := w.Write(npyHeader(descr, a.Shape, 0)); err != nil {
		return err
	}
	if v, ok := a.Values.([]uint8); ok {
		_, err := w.Write(v)
		return err
	}
	return binary.Write(w, binary.LittleEndian, a.Values)
}

// npyHeader opens a .npy file. It fills a multiple of 64 bytes, and at least size.
func npyHeader(descr string, shape []int, size int) []byte {
	dims := make([]string, len(shape))
	for i, d := range shape {
		dims[i] = strconv.Itoa(d)
	}
	list := strings.Join(dims, ", ")
	if len(dims) == 1 {
		list += ","
	}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, list)
	const opening = len(magic) + 4
	for total := opening + len(text) + 1; total%64 != 0 || total < size; total++ {
		text += " "
	}
	text += "\n"
	head := []byte(magic + "\x01\x00")
	head = binary.LittleEndian.AppendUint16(head, uint16(len(text)))
	return append(head, text...)
}

// WriteNPZ writes arrays as an uncompressed .npz file, sorted by name, as numpy.savez does.
func WriteNPZ(w io.Writer, arrays map[string]*Array) error {
	z := zip.NewWriter(w)
	for _, name := range slices.Sorted(maps.Keys(arrays)) {
		f, err := z.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: zip.Store})
		if err != nil {
			return err
		}
		if err := WriteNPY(f, arrays[name]); err != nil {
			return err
		}
	}
	return z.Close()
}
