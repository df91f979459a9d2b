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

// magic begins every .npy file; two bytes of version and the length of the header follow.
const magic = "\x93NUMPY"

// maxArray bounds the number of values of an array.
const maxArray = 1 << 36

// npyText is a header as npyHeader writes it.
var npyText = regexp.MustCompile(`^{'descr': '([^']*)', 'fortran_order': False, 'shape': \(([0-9, ]*)\), } *\n$`)

// readLabels reads the labels that a Writer has stored, [n] of int32.
func readLabels(file []byte) ([]int32, error) {
	r := bytes.NewReader(file)
	descr, shape, err := readNPYHeader(r)
	if err == nil && (descr != "<i4" || len(shape) != 1 || r.Len() != 4*shape[0]) {
		err = fmt.Errorf("labels of type %q and shape %v in %d bytes; they are [n] of int32", descr, shape, r.Len())
	}
	if err != nil {
		return nil, errorIn(labelsFile, "%v", err)
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

// readNPYHeader reads a file of WriteNPY up to its values: their type, such as "<f4", and shape.
func readNPYHeader(r io.Reader) (descr string, shape []int, err error) {
	head := make([]byte, len(magic)+4)
	if _, err := io.ReadFull(r, head); err != nil || !strings.HasPrefix(string(head), magic+"\x01\x00") {
		return "", nil, errors.New("not a .npy file of version 1")
	}
	text := make([]byte, binary.LittleEndian.Uint16(head[len(magic)+2:]))
	if _, err := io.ReadFull(r, text); err != nil {
		return "", nil, err
	}
	fields := npyText.FindSubmatch(text)
	if fields == nil {
		return "", nil, fmt.Errorf("header %q", text)
	}
	for field := range strings.FieldsFuncSeq(string(fields[2]), func(r rune) bool { return r == ',' || r == ' ' }) {
		size, err := strconv.Atoi(field)
		if err != nil {
			return "", nil, err
		}
		shape = append(shape, size)
	}
	return string(fields[1]), shape, nil
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

// npyHeader returns the header of a .npy file: a multiple of 64 bytes, at least size.
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
