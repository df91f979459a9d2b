package data_test

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/train/data"
)

// golden holds what the Python client is held to as well.
type golden struct {
	Floats []float32    `json:"floats"` // of bytes 0 … 255
	Bytes  [][2]float64 `json:"bytes"`  // floats with their bytes: beyond the range, and beside ties
}

func TestGolden(t *testing.T) {
	text, err := os.ReadFile("testdata/pixels.json")
	if err != nil {
		t.Fatal(err)
	}
	var want golden
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	for v := range 256 {
		if got := data.FromUint8(uint8(v)); got != want.Floats[v] {
			t.Errorf("byte %d is %v, want %v", v, got, want.Floats[v])
		}
	}
	for _, q := range want.Bytes {
		if got := data.ToUint8(float32(q[0])); got != uint8(q[1]) {
			t.Errorf("%v is byte %d, want %v", q[0], got, q[1])
		}
	}
}

// Every byte survives the way to a float and back; what is no number is black, what lies beyond the range is clamped,
// and ties go to even.
func TestThereAndBack(t *testing.T) {
	for v := range 256 {
		if got := data.ToUint8(data.FromUint8(uint8(v))); int(got) != v {
			t.Errorf("byte %d comes back as %d", v, got)
		}
	}
	inf := float32(math.Inf(1))
	for x, want := range map[float32]uint8{float32(math.NaN()): 0, -inf: 0, inf: 255, -3: 0, 3: 255, 0: 128, 0.2: 153} {
		if got := data.ToUint8(x); got != want {
			t.Errorf("%v is byte %d, want %d", x, got, want)
		}
	}
}

// Two images of 2×3 pixels in 2 channels, by hand; the way back is the inverse, and the same layout is a copy.
func TestLayouts(t *testing.T) {
	hwc := []uint8{0, 10, 1, 11, 2, 12, 3, 13, 4, 14, 5, 15, 20, 30, 21, 31, 22, 32, 23, 33, 24, 34, 25, 35}
	chw := []uint8{0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15, 20, 21, 22, 23, 24, 25, 30, 31, 32, 33, 34, 35}
	got := make([]uint8, len(hwc))
	data.Reorder(got, hwc, data.HWC, data.CHW, 2, 3, 2)
	if !slices.Equal(got, chw) {
		t.Errorf("channels first: %v", got)
	}
	if back := data.ToHWC(chw, data.CHW, 2, 3, 2); !slices.Equal(back, hwc) {
		t.Errorf("channels last again: %v", back)
	}
	for layout, src := range map[data.Layout][]uint8{data.HWC: hwc, data.CHW: chw} {
		floats := make([]float32, len(src))
		data.Convert(floats, src, layout, data.HWC, 2, 3, 2, data.FromUint8)
		for i, v := range hwc {
			if floats[i] != data.FromUint8(v) {
				t.Errorf("%s as floats: value %d is %v", layout, i, floats[i])
			}
		}
	}
}

func TestMirror(t *testing.T) {
	image := []int{0, 10, 1, 11, 2, 12, 3, 13, 4, 14, 5, 15} // 2×3 pixels in 2 channels
	data.Mirror(image, 3, 2)
	if want := []int{2, 12, 1, 11, 0, 10, 5, 15, 4, 14, 3, 13}; !slices.Equal(image, want) {
		t.Errorf("%v, want %v", image, want)
	}
}
