package data

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io/fs"
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
	if err := writeFile(path, buf.Bytes()); err != nil {
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
		if _, err := ReadNPY(bytes.NewReader(c.file)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one that says %q", name, err, c.want)
		}
	}
}

func TestImage(t *testing.T) {
	hwc, err := New([]uint8{0, 255, 51, 102, 1, 2, 3, 4}, []int32{1, 0}, 1, 2, 2, HWC)
	if err != nil {
		t.Fatal(err)
	}
	chw, err := New([]float32{-1, -0.6, 1, -0.2}, nil, 1, 2, 2, CHW)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]float32, 4)
	for _, c := range []struct {
		name string
		d    *Dataset
		flip bool
		want []float32
	}{
		{"uint8", hwc, false, []float32{-1, 1, -0.6, -0.2}},
		{"uint8 flipped", hwc, true, []float32{-0.6, -0.2, -1, 1}},
		{"channels first", chw, false, []float32{-1, 1, -0.6, -0.2}},
		{"channels first flipped", chw, true, []float32{-0.6, -0.2, -1, 1}},
	} {
		c.d.Image(0, c.flip, got)
		for i := range got {
			if math.Abs(float64(got[i]-c.want[i])) > 1e-6 {
				t.Errorf("%s: %v, want %v", c.name, got, c.want)
				break
			}
		}
	}
	if hwc.Classes() != 2 || hwc.Label(0) != 1 || chw.Label(0) != -1 || chw.Labelled() {
		t.Errorf("classes %d, labels %d, %d", hwc.Classes(), hwc.Label(0), chw.Label(0))
	}
}

func TestRefusals(t *testing.T) {
	nan := float32(math.NaN())
	for name, c := range map[string]struct {
		images any
		labels []int32
		h      int
		row    int
	}{
		"NaN":            {[]float32{0, 0, nan, 0}, nil, 2, 1},
		"infinite":       {[]float32{float32(math.Inf(-1)), 0}, nil, 2, 0},
		"too bright":     {[]float32{0, 1.00001}, nil, 2, 0},
		"negative label": {[]uint8{1, 2, 3, 4}, []int32{0, -1}, 2, 1},
		"short labels":   {[]uint8{1, 2, 3, 4}, []int32{0}, 2, -1},
		"ragged":         {[]uint8{1, 2, 3}, nil, 2, -1},
		"empty":          {[]uint8{}, nil, 2, -1},
		"type":           {[]int64{1, 2}, nil, 2, -1},
		"no height":      {[]uint8{1, 2}, nil, 0, -1},
	} {
		_, err := New(c.images, c.labels, c.h, 1, 1, HWC)
		var e *Error
		if !errors.As(err, &e) || e.Row != c.row {
			t.Errorf("%s: error %v, want one about row %d", name, err, c.row)
		}
	}
	if _, err := New([]float32{1 + 5e-7, -1}, nil, 2, 1, 1, HWC); err != nil {
		t.Errorf("rounding beyond 1 refused: %v", err)
	}
}

func TestSaveLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "digits")
	d, err := New([]float32{-1, 0, 1, 0.5, 0.25, 0, 0, 0, -1, -1, 1, 1}, []int32{3, 0}, 2, 1, 3, CHW)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Save(path, false); err != nil {
		t.Fatal(err)
	}
	if err := d.Save(path, false); !errors.Is(err, fs.ErrExist) {
		t.Errorf("second save: %v", err)
	}
	got, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, d) {
		t.Errorf("loaded %+v, want %+v", got, d)
	}
}

// TestOrder: every epoch visits every image once; positions do not depend on how they are reached.
func TestOrder(t *testing.T) {
	const n = 97
	o := NewOrder(7, n, true)
	var first, second []int
	flips := 0
	for p := range uint64(2 * n) {
		i, flip := o.At(p)
		if p < n {
			first = append(first, i)
		} else {
			second = append(second, i)
		}
		if flip {
			flips++
		}
	}
	if slices.Equal(first, second) {
		t.Error("two epochs have one order")
	}
	if flips < 60 || flips > 134 { // 97 ± 37 is beyond five standard deviations
		t.Errorf("%d of %d visits are mirrored", flips, 2*n)
	}
	again := NewOrder(7, n, true)
	if i, _ := again.At(n + 5); i != second[5] {
		t.Errorf("position %d is image %d or %d", n+5, i, second[5])
	}
	if other, _ := NewOrder(8, n, false).At(0); other == first[0] {
		if next, _ := NewOrder(8, n, false).At(1); next == first[1] {
			t.Error("two seeds have one order")
		}
	}
	slices.Sort(first)
	for i, v := range first {
		if v != i {
			t.Fatalf("an epoch visits %v", first)
		}
	}
}

func writeFile(path string, b []byte) error { return os.WriteFile(path, b, 0o644) }
