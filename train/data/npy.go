package data

import (
	"archive/zip"
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Array is one NumPy array: row-major values, []uint8, []int32, []int64, []uint64, []float32 or []float64.
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

// readNPY reads one array in NumPy's .npy format (versions 1 to 3, C order, little-endian). Whole numbers
// of less than 32 bits, but uint8, become int32; uint32 becomes int64.
func readNPY(r io.Reader) (*Array, error) {
	descr, shape, err := readNPYHeader(r)
	if err != nil {
		return nil, fmt.Errorf("npy: %w", err)
	}
	n, err := product(shape)
	if err != nil {
		return nil, fmt.Errorf("npy: %w", err)
	}
	a := &Array{Shape: shape}
	switch descr {
	case "|u1":
		a.Values, err = readValues(r, n, 1, func(b []byte) uint8 { return b[0] })
	case "|i1":
		a.Values, err = readValues(r, n, 1, func(b []byte) int32 { return int32(int8(b[0])) })
	case "<i2":
		a.Values, err = readValues(r, n, 2, func(b []byte) int32 { return int32(int16(binary.LittleEndian.Uint16(b))) })
	case "<u2":
		a.Values, err = readValues(r, n, 2, func(b []byte) int32 { return int32(binary.LittleEndian.Uint16(b)) })
	case "<u4":
		a.Values, err = readValues(r, n, 4, func(b []byte) int64 { return int64(binary.LittleEndian.Uint32(b)) })
	case "<i4":
		a.Values, err = readValues(r, n, 4, func(b []byte) int32 { return int32(binary.LittleEndian.Uint32(b)) })
	case "<i8":
		a.Values, err = readValues(r, n, 8, func(b []byte) int64 { return int64(binary.LittleEndian.Uint64(b)) })
	case "<u8":
		a.Values, err = readValues(r, n, 8, binary.LittleEndian.Uint64)
	case "<f4":
		a.Values, err = readValues(r, n, 4,
			func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) })
	case "<f8":
		a.Values, err = readValues(r, n, 8,
			func(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) })
	default:
		return nil, fmt.Errorf("npy: dtype %q is not read; whole numbers, float32 and float64 are, little-endian", descr)
	}
	if err != nil {
		return nil, fmt.Errorf("npy: %w", err)
	}
	return a, nil
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

// readValues reads n values of size bytes each, in pieces, so that a file that lies about its shape costs
// no more memory than it has bytes.
func readValues[E any](r io.Reader, n, size int, decode func([]byte) E) ([]E, error) {
	const piece = 1 << 16
	out := make([]E, 0, min(n, piece))
	buf := make([]byte, size*piece)
	for len(out) < n {
		b := buf[:size*min(piece, n-len(out))]
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, fmt.Errorf("%d of %d values: %w", len(out), n, io.ErrUnexpectedEOF)
		}
		for ; len(b) > 0; b = b[size:] {
			out = append(out, decode(b))
		}
	}
	return out, nil
}

// WriteNPY writes an array in NumPy's .npy format, version 1, as numpy.save does.
func WriteNPY(w io.Writer, a *Array) error {
	var descr string
	switch a.Values.(type) {
	case []uint8:
		descr = "|u1"
	case []int32:
		descr = "<i4"
	case []int64:
		descr = "<i8"
	case []uint64:
		descr = "<u8"
	case []float32:
		descr = "<f4"
	case []float64:
		descr = "<f8"
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

// ReadNPZ reads the named arrays of a .npz file, all of them if no name is given. A missing name is an error.
func ReadNPZ(path string, names ...string) (map[string]*Array, error) {
	z, err := zip.OpenReader(path)
	if err != nil {
		return nil, fmt.Errorf("npz: %w", err)
	}
	defer z.Close()
	out := map[string]*Array{}
	for _, f := range z.File {
		name := strings.TrimSuffix(f.Name, ".npy")
		if len(names) > 0 && !slices.Contains(names, name) {
			continue
		}
		r, err := f.Open()
		if err != nil {
			return nil, fmt.Errorf("npz: %s: %w", f.Name, err)
		}
		out[name], err = readNPY(bufio.NewReaderSize(r, 1<<20))
		r.Close()
		if err != nil {
			return nil, fmt.Errorf("npz: %s: %w", f.Name, err)
		}
	}
	for _, name := range names {
		if out[name] == nil {
			return nil, fmt.Errorf("npz: %s has no array %q", path, name)
		}
	}
	return out, nil
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
