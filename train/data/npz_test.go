package data

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestGoldenNPY pins the bytes that numpy.save writes for numpy.arange(3, dtype="<f4").
func TestGoldenNPY(t *testing.T) {
	var got bytes.Buffer
	if err := WriteNPY(&got, &Array{[]int{3}, []float32{0, 1, 2}}); err != nil {
		t.Fatal(err)
	}
	text := "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"
	text += strings.Repeat(" ", 117-len(text)) + "\n"
	want := "934e554d50590100" + "7600" + hex.EncodeToString([]byte(text)) + "00000000" + "0000803f" + "00000040"
	if hex.EncodeToString(got.Bytes()) != want {
		t.Errorf("wrote %x", got.Bytes())
	}
}

// numpySavez is what numpy 2.4.6's savez_compressed wrote for
// images=np.array([[0, 128, 255]], np.uint8), labels=np.array([7, -1], np.int64).
const numpySavez = `UEsDBC0AAAAIAAAAIQDLT5SD//////////8KABQAaW1hZ2VzLm5weQEAEACDAAAAAAAAAEkAAAAAAAAAm+wX6hsQychQxlCtnpJanFykbqWgXl
NqqK6joJ6WX1RSlJgXn1+UkgoSd0vMKU4FihdnJBakAvkahjoKxpo6CrUKZAMuhob/AFBLAwQtAAAACAAAACEA4JLOvP//////////CgAUAGxh
YmVscy5ucHkBABAAkAAAAAAAAABKAAAAAAAAAJvsF+obEMnIUMZQrZ6SWpxcpG6loG6TaaGuo6Cell9UUpSYF59flJIKEndLzClOBYoXZyQWpA
L5GkY6mjoKtQoUAC52Bgj4DwUAUEsBAi0DLQAAAAgAAAAhAMtPlINJAAAAgwAAAAoAAAAAAAAAAAAAAIABAAAAAGltYWdlcy5ucHlQSwECLQMt
AAAACAAAACEA4JLOvEoAAACQAAAACgAAAAAAAAAAAAAAgAGFAAAAbGFiZWxzLm5weVBLBQYAAAAAAgACAHAAAAALAQAAAAA=`

func TestReadsNumPy(t *testing.T) {
	b, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(numpySavez, "\n", ""))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "numpy.npz")
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := ReadNPZ(path, "images", "labels")
	if err != nil {
		t.Fatal(err)
	}
	if want := (&Array{[]int{1, 3}, []uint8{0, 128, 255}}); !reflect.DeepEqual(got["images"], want) {
		t.Errorf("images %v", got["images"])
	}
	if want := (&Array{[]int{2}, []int64{7, -1}}); !reflect.DeepEqual(got["labels"], want) {
		t.Errorf("labels %v", got["labels"])
	}
}

// TestWholeNumbers: NumPy's smaller whole numbers become larger ones.
func TestWholeNumbers(t *testing.T) {
	for descr, c := range map[string]struct {
		bytes string
		want  any
	}{
		"|i1": {"\x05\xff", []int32{5, -1}},
		"<i2": {"\x05\x01\xff\xff", []int32{261, -1}},
		"<u2": {"\x05\x00\xff\xff", []int32{5, 65535}},
		"<u4": {"\x05\x00\x00\x00\xff\xff\xff\xff", []int64{5, math.MaxUint32}},
	} {
		file := append(npyHeader(descr, []int{2}, 0), c.bytes...)
		if a, err := readNPY(bytes.NewReader(file)); err != nil || !reflect.DeepEqual(a.Values, c.want) {
			t.Errorf("%s: read %v, error %v; want %v", descr, a, err, c.want)
		}
	}
}

func TestNPZRoundTrip(t *testing.T) {
	arrays := map[string]*Array{
		"a": {[]int{2, 2}, []uint8{1, 2, 3, 255}},
		"b": {[]int{}, []float64{math.Pi}},
		"c": {[]int{2, 0}, []int64{}},
		"d": {[]int{1}, []uint64{math.MaxUint64}},
		"e": {[]int{70000}, make([]int32, 70000)},
	}
	path := filepath.Join(t.TempDir(), "x.npz")
	var buf bytes.Buffer
	if err := WriteNPZ(&buf, arrays); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, buf.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := ReadNPZ(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, a := range arrays {
		if !slices.Equal(got[name].Shape, a.Shape) || !reflect.DeepEqual(got[name].Values, a.Values) {
			t.Errorf("%s: %v, want %v", name, got[name], a)
		}
	}
	if _, err := ReadNPZ(path, "images"); err == nil || !strings.Contains(err.Error(), `no array "images"`) {
		t.Errorf("missing array: %v", err)
	}
}

func TestNPYRefusals(t *testing.T) {
	file := func(text string) []byte {
		return append([]byte("\x93NUMPY\x01\x00"+string([]byte{byte(len(text)), 0})), text...)
	}
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"text":      {[]byte("hello"), "not a .npy"},
		"fortran":   {file("{'descr': '<f4', 'fortran_order': True, 'shape': (1,)}"), "Fortran order"},
		"dtype":     {file("{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}"), "dtype"},
		"object":    {file("{'descr': '|O', 'fortran_order': False, 'shape': (1,)}"), "dtype"},
		"truncated": {file("{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000,)}"), "0 of 1000000000 values"},
		"overflow":  {file("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}"), "too large"},
		"header":    {file("{}"), "header"},
	} {
		if _, err := readNPY(bytes.NewReader(c.file)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one that says %q", name, err, c.want)
		}
	}
}
