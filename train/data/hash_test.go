package data

import (
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/train/data/pixels"
)

// Equal data sets have equal hashes, and whatever differs changes it.
func TestHash(t *testing.T) {
	base := Images{Height: 2, Width: 2, Channels: 1, Uint8: []uint8{0, 1, 2, 3, 4, 5, 6, 7}, Labels: []int32{0, 1}}
	hash := func(change func(*Images)) string {
		im := base
		im.Uint8, im.Labels = slices.Clone(base.Uint8), slices.Clone(base.Labels)
		change(&im)
		d, err := New(im)
		if err != nil {
			t.Fatal(err)
		}
		first := d.Hash()
		if again := d.Hash(); again != first {
			t.Errorf("the hash changes from %s to %s", first, again)
		}
		return first
	}
	seen := map[string]string{}
	for name, change := range map[string]func(*Images){
		"the same":  func(*Images) {},
		"a pixel":   func(im *Images) { im.Uint8[7]++ },
		"a label":   func(im *Images) { im.Labels[1] = 2 },
		"no labels": func(im *Images) { im.Labels = nil },
		"layout":    func(im *Images) { im.Layout = pixels.CHW },
		"shape":     func(im *Images) { im.Width, im.Height = 4, 1 },
		"type":      func(im *Images) { im.Uint8, im.Float32 = nil, make([]float32, 8) },
		"a float":   func(im *Images) { im.Uint8, im.Float32 = nil, []float32{7: 0.5} },
	} {
		h := hash(change)
		if other, twice := seen[h]; twice || len(h) != 64 {
			t.Errorf("%s hashes as %s does: %s", name, other, h)
		}
		seen[h] = name
	}
	if _, known := seen[hash(func(*Images) {})]; !known {
		t.Error("equal data sets hash differently")
	}
}
