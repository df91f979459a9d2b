package safetensors

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// raw assembles a file from a header text and data.
func raw(header string, data ...byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), data...)
}

// TestGoldenBytes pins the written file byte by byte.
func TestGoldenBytes(t *testing.T) {
	f := &File{
		Tensors:  []Tensor{FromFloat32s("w", []int{2}, []float32{1, -2}), FromInt64s("n", nil, []int64{7})},
		Metadata: map[string]string{"b": "2", "a": "1"},
	}
	var got bytes.Buffer
	if err := Write(&got, f); err != nil {
		t.Fatal(err)
	}
	header := `{"__metadata__":{"a":"1","b":"2"},"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},` +
		`"n":{"dtype":"I64","shape":[],"data_offsets":[8,16]}}`
	for (len(header)+8)%8 != 0 {
		header += " "
	}
	want := raw(header, 0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0, 7, 0, 0, 0, 0, 0, 0, 0)
	if !bytes.Equal(got.Bytes(), want) {
		t.Fatalf("wrote\n%q\nwant\n%q", got.Bytes(), want)
	}
	back, err := Decode(got.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if back.Metadata["a"] != "1" || back.Lookup("x") != nil {
		t.Errorf("metadata %v", back.Metadata)
	}
	w, err := back.Lookup("w").Float64s()
	if err != nil || !slices.Equal(w, []float64{1, -2}) {
		t.Errorf("w = %v, %v", w, err)
	}
	n, err := back.Lookup("n").Int64s()
	if err != nil || !slices.Equal(n, []int64{7}) {
		t.Errorf("n = %v, %v", n, err)
	}
}

func TestHalfPrecision(t *testing.T) {
	h := Tensor{Name: "h", DType: F16, Shape: []int{6}, Data: []byte{0, 0x3c, 0, 0xc0, 1, 0, 0xff, 0x7b, 0, 0x7c, 1, 0x7e}}
	got, err := h.Float64s()
	if err != nil {
		t.Fatal(err)
	}
	want := []float64{1, -2, math.Ldexp(1, -24), 65504, math.Inf(1), math.NaN()}
	for i := range want {
		if got[i] != want[i] && !(math.IsNaN(got[i]) && math.IsNaN(want[i])) {
			t.Errorf("half %d: %v, want %v", i, got[i], want[i])
		}
	}
	b := Tensor{Name: "b", DType: BF16, Shape: []int{1}, Data: []byte{0x80, 0x3f}}
	if v, err := b.Float32s(); err != nil || v[0] != 1 {
		t.Errorf("bfloat16 %v, %v", v, err)
	}
}

// TestRefusals: every way in which a file can lie has its message.
func TestRefusals(t *testing.T) {
	f32 := func(begin, end string) string {
		return `{"dtype":"F32","shape":[1],"data_offsets":[` + begin + `,` + end + `]}`
	}
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"short":            {[]byte{1}, "too few"},
		"huge header":      {binary.LittleEndian.AppendUint64(nil, 1<<40), "at most"},
		"truncated header": {raw(`{}`)[:9], "truncated"},
		"not an object":    {raw(`[]`), "not a JSON object"},
		"cut object":       {raw(`{"a":`), "unexpected EOF"},
		"two values":       {raw(`{} {}`), "after top-level value"},
		"duplicate name": {
			raw(`{"a":`+f32("0", "4")+`,"a":`+f32("4", "8")+`}`, make([]byte, 8)...), "duplicate object member name",
		},
		"gap":            {raw(`{"a":`+f32("4", "8")+`}`, make([]byte, 8)...), "gap or an overlap"},
		"overlap":        {raw(`{"a":`+f32("0", "4")+`,"b":`+f32("2", "6")+`}`, make([]byte, 6)...), "gap or an overlap"},
		"backwards":      {raw(`{"a":` + f32("0", "-1") + `}`), "header"},
		"truncated data": {raw(`{"a":`+f32("0", "4")+`}`, 0, 0), "truncated"},
		"wrong size":     {raw(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}`, 0, 0, 0, 0), "4 bytes for"},
		"overflowing": {
			raw(`{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`),
			"impossible shape",
		},
		"negative size": {raw(`{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,0]}}`), "impossible shape"},
		"unknown dtype": {raw(`{"a":{"dtype":"Q4","shape":[],"data_offsets":[0,4]}}`, 0, 0, 0, 0), "unknown dtype"},
		"trailing":      {raw(`{}`, 1), "after the last"},
	} {
		_, err := Decode(c.file)
		var fe *FormatError
		if !errors.As(err, &fe) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one that says %q", name, err, c.want)
		}
		if _, scanned := scanAll(c.file); scanned == nil || scanned.Error() != err.Error() {
			t.Errorf("%s: Scan says %v, Decode %v", name, scanned, err)
		}
	}
}

// scanAll returns what Scan yields of a file with these bytes.
func scanAll(file []byte) (tensors []Tensor, err error) {
	for tensor, err := range Scan(bytes.NewReader(file), int64(len(file))) {
		if err != nil {
			return tensors, err
		}
		tensor.Data = slices.Clone(tensor.Data)
		tensors = append(tensors, tensor)
	}
	return tensors, nil
}

// TestScan: what Scan yields is what Decode returns.
func TestScan(t *testing.T) {
	f := &File{Tensors: []Tensor{
		FromFloat32s("w", []int{2}, []float32{1, -2}), FromFloat32s("none", []int{0}, nil),
		FromInt64s("n", nil, []int64{7}),
	}}
	var b bytes.Buffer
	if err := Write(&b, f); err != nil {
		t.Fatal(err)
	}
	whole, err := Decode(b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := scanAll(b.Bytes()); err != nil || !reflect.DeepEqual(got, whole.Tensors) {
		t.Errorf("scanned %v, error %v; decoded %v", got, err, whole.Tensors)
	}
}

func TestEmptyTensorsAndUnsortedHeader(t *testing.T) {
	f, err := Decode(raw(`{"b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"F32","shape":[0,3],`+
		`"data_offsets":[0,0]}}`, 9))
	if err != nil {
		t.Fatal(err)
	}
	if b := f.Lookup("b"); b == nil || b.Data[0] != 9 || len(f.Lookup("a").Data) != 0 {
		t.Errorf("read %+v", f.Tensors)
	}
}

// FuzzDecode: no input may panic, and what decodes must encode to something that decodes to the same tensors.
func FuzzDecode(f *testing.F) {
	f.Add(raw(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 0, 0, 128, 63))
	f.Add(raw(`{"__metadata__":{"k":"v"}}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := Decode(b)
		if err != nil {
			return
		}
		var again bytes.Buffer
		if err := Write(&again, got); err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		back, err := Decode(again.Bytes())
		if err != nil || len(back.Tensors) != len(got.Tensors) {
			t.Fatalf("written file: %v", err)
		}
	})
}
