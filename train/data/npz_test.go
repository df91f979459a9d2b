package data

import (
	"bytes"
	"encoding/hex"
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

func TestNPYRefusals(t *testing.T) {
	file := func(text string) []byte {
		text += ", }\n"
		return append([]byte("\x93NUMPY\x01\x00"+string([]byte{byte(len(text)), 0})), text...)
	}
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"text":      {[]byte("hello"), "not a .npy"},
		"fortran":   {file("{'descr': '<f4', 'fortran_order': True, 'shape': (1,)"), "header"},
		"dtype":     {file("{'descr': '<f4', 'fortran_order': False, 'shape': (0,)"), `type "<f4"`},
		"truncated": {file("{'descr': '<i4', 'fortran_order': False, 'shape': (1000000000,)"), "in 0 bytes"},
		"matrix":    {file("{'descr': '<i4', 'fortran_order': False, 'shape': (0, 2)"), "shape [0 2]"},
	} {
		if _, err := readLabels(c.file); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one that says %q", name, err, c.want)
		}
	}
}
