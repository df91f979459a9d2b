package resample_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/train/data"
	"github.com/anisoflight/anisoflight/train/data/resample"
)

// picture is the one of testdata/make.py.
func picture(height, width int) resample.Image {
	im := resample.Image{Height: height, Width: width, Channels: 3}
	for y := range height {
		for x := range width {
			for c := range 3 {
				noise := (x*7919 + y*104729 + c*1299709) % 61
				im.Pixels = append(im.Pixels, uint8(x*(3+c)+y*5+120*((x/7+y/5)%2)+noise))
			}
		}
	}
	return im
}

// TestPillow: every filter, smaller and larger, and ADM's crop give Pillow's bytes.
func TestPillow(t *testing.T) {
	golden, err := data.ReadNPZ("testdata/pillow.npz")
	if err != nil {
		t.Fatal(err)
	}
	filters := map[string]resample.Filter{"box": resample.Box, "bicubic": resample.Bicubic, "lanczos": resample.Lanczos}
	dhariwal, err := resample.Named("center-crop-dhariwal")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range golden {
		var h, w, height, width int
		kind, sizes, _ := strings.Cut(name, "_")
		if _, err := fmt.Sscanf(sizes, "%dx%d_%dx%d", &h, &w, &height, &width); err != nil {
			t.Fatal(name, err)
		}
		var got resample.Image
		if f, ok := filters[kind]; ok {
			got = picture(h, w).Resize(height, width, f)
		} else {
			got, _ = dhariwal(picture(h, w), height, width)
		}
		if !slices.Equal([]int{got.Height, got.Width, got.Channels}, want.Shape) {
			t.Errorf("%s: %d×%d×%d, want %v", name, got.Height, got.Width, got.Channels, want.Shape)
		} else if i := firstDifference(got.Pixels, want.Values.([]uint8)); i >= 0 {
			t.Errorf("%s: value %d is %d, Pillow's %d", name, i, got.Pixels[i], want.Values.([]uint8)[i])
		}
	}
}

func firstDifference(a, b []uint8) int {
	for i := range a {
		if a[i] != b[i] {
			return i
		}
	}
	return -1
}

// TestCenterCrop: the crop is that of the middle, and a picture of the right size stays
// as it is.
func TestCenterCrop(t *testing.T) {
	crop, err := resample.Named("center-crop")
	if err != nil {
		t.Fatal(err)
	}
	im := picture(20, 33)
	got, ok := crop(im, 20, 20)
	if want := im.Crop(0, 6, 20, 20); !ok || !slices.Equal(got.Pixels, want.Pixels) {
		t.Error("the middle of a wide picture is another")
	}
	if again, _ := crop(got, 20, 20); !slices.Equal(again.Pixels, got.Pixels) {
		t.Error("a picture of the right size changes")
	}
}

// TestCenterCropWide: rows in the middle between black bars; small pictures are left out.
func TestCenterCropWide(t *testing.T) {
	crop, err := resample.Named("center-crop-wide")
	if err != nil {
		t.Fatal(err)
	}
	im := picture(30, 40)
	got, ok := crop(im, 30, 40)
	if !ok || got.Height != 40 || got.Width != 40 {
		t.Fatalf("%v, %d×%d", ok, got.Height, got.Width)
	}
	bar := got.Crop(0, 0, 5, 40)
	if slices.Max(bar.Pixels) != 0 || !slices.Equal(got.Crop(5, 0, 30, 40).Pixels, im.Pixels) {
		t.Error("the picture does not lie between black bars of 5 rows")
	}
	for _, small := range []resample.Image{picture(30, 39), picture(29, 40)} {
		if _, ok := crop(small, 30, 40); ok {
			t.Errorf("%d×%d is kept", small.Height, small.Width)
		}
	}
}

// TestConstant: weights sum to one, so that a plain picture stays plain.
func TestConstant(t *testing.T) {
	for _, f := range []resample.Filter{resample.Box, resample.Bicubic, resample.Lanczos} {
		for _, v := range []uint8{0, 1, 200, 255} {
			im := resample.Image{Height: 17, Width: 29, Channels: 1, Pixels: slices.Repeat([]uint8{v}, 17*29)}
			if got := im.Resize(5, 64, f).Pixels; slices.Min(got) != v || slices.Max(got) != v {
				t.Errorf("%d becomes %d … %d", v, slices.Min(got), slices.Max(got))
			}
		}
	}
}

func TestUnknownTransform(t *testing.T) {
	if _, err := resample.Named("crop"); err == nil || !strings.Contains(err.Error(), "center-crop-dhariwal") {
		t.Errorf("error %v, want one that lists the transforms", err)
	}
}

func BenchmarkLanczos512To64(b *testing.B) {
	im := picture(512, 512)
	for b.Loop() {
		im.Resize(64, 64, resample.Lanczos)
	}
}
