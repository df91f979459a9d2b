package data

import (
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/internal/base/normalization"
)

// field is two images of 1×2 pixels in two channels: temperatures and winds, CHW.
func field() Images {
	return Images{
		Height: 1, Width: 2, Channels: 2, Layout: CHW,
		Float32: []float32{280, 296, -1, 0, 264, 248, 3, 2}, Labels: []int32{0, 1},
		Normalization: &normalization.Affine{Mean: []float64{272, 1}, Scale: []float64{16, 2}},
	}
}

// TestField: what is stored comes back to the bit, and is seen through its normalization, mirrored or not.
func TestField(t *testing.T) {
	want := mustNew(t, field())
	d, _ := reopened(t, field())
	got, err := d.Float32(0, 2)
	if err != nil || !slices.Equal(got, field().Float32) {
		t.Errorf("stored %v, %v", got, err)
	}
	if !d.Normalization().Equal(want.Normalization()) || d.Hash() != want.Hash() || d.computeHash() != want.Hash() {
		t.Errorf("normalization %v, hash %s, computed %s, want %s", d.Normalization(), d.Hash(), d.computeHash(), want.Hash())
	}
	im := make([]float32, 4)
	for flip, want := range map[bool][]float32{false: {0.5, -1, 1.5, -0.5}, true: {1.5, -0.5, 0.5, -1}} {
		if err := d.Image(0, flip, im); err != nil || !slices.Equal(im, want) {
			t.Errorf("mirrored %v: %v, want %v (%v)", flip, im, want, err)
		}
	}
	plain := field()
	plain.Normalization, plain.Unbounded = nil, true
	if mustNew(t, plain).Hash() == d.Hash() {
		t.Error("the hash does not know the normalization")
	}
}

// TestWithNormalization: a network's normalization replaces that of the data set.
func TestWithNormalization(t *testing.T) {
	d := mustNew(t, field())
	other, err := d.WithNormalization(&normalization.Affine{Mean: []float64{264, -1}, Scale: []float64{32, 1}})
	if err != nil {
		t.Fatal(err)
	}
	im := make([]float32, 4)
	if err := other.Image(0, false, im); err != nil || !slices.Equal(im, []float32{0.5, 0, 1, 1}) {
		t.Errorf("%v, %v", im, err)
	}
	if err := d.Image(0, false, im); err != nil || !slices.Equal(im, []float32{0.5, -1, 1.5, -0.5}) {
		t.Errorf("the data set itself has changed: %v, %v", im, err)
	}
	if same, err := d.WithNormalization(nil); same != d || err != nil {
		t.Errorf("under nothing: %v", err)
	}
	if _, err := d.WithNormalization(&normalization.Affine{Mean: []float64{0}, Scale: []float64{1}}); err == nil {
		t.Error("one channel for two")
	}
	bytes := mustNew(t, Images{Height: 1, Width: 1, Channels: 1, Uint8: []uint8{3}})
	if _, err := bytes.WithNormalization(&normalization.Affine{Mean: []float64{0}, Scale: []float64{1}}); err == nil {
		t.Error("bytes have units")
	}
}

// TestMeasured: mean and twice the standard deviation, whatever pieces the images come in.
func TestMeasured(t *testing.T) {
	im := field()
	form := Form{
		Height: 1, Width: 2, Channels: 2, Layout: CHW, Float: true, Labels: true,
		MeasureMean: true, MeasureScale: true,
	}
	store := func(form Form, pieces ...int) *Dataset {
		dir := filepath.Join(t.TempDir(), "x")
		w, err := Create(dir, form, 0)
		if err != nil {
			t.Fatal(err)
		}
		at := 0
		for _, n := range pieces {
			if err := w.Float32(im.Float32[4*at:4*(at+n)], im.Labels[at:at+n]); err != nil {
				t.Fatal(err)
			}
			at += n
		}
		if err := w.Commit(false); err != nil {
			t.Fatal(err)
		}
		d := open(t, dir)
		if err := d.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		return d
	}
	d := store(form, 2)
	wind := 2 * math.Sqrt(2.5)
	want := &normalization.Affine{Mean: []float64{272, 1}, Scale: []float64{2 * math.Sqrt(320), wind}}
	for c := range 2 {
		n := d.Normalization()
		if math.Abs(n.Mean[c]-want.Mean[c]) > 1e-12 || math.Abs(n.Scale[c]-want.Scale[c]) > 1e-12 {
			t.Errorf("measured %v, want %v", n, want)
		}
	}
	if apart := store(form, 1, 1); apart.Hash() != d.Hash() {
		t.Error("pieces change what is measured")
	}
	form.MeasureMean = false
	if n := store(form, 2).Normalization(); n.Mean[0] != 0 || n.Scale[1] != d.Normalization().Scale[1] {
		t.Errorf("scale alone: %v", n)
	}
	form.Normalization = &normalization.Affine{Mean: []float64{7, 7}, Scale: []float64{1, 1}}
	if n := store(form, 2).Normalization(); n.Mean[0] != 7 || n.Scale[1] != d.Normalization().Scale[1] {
		t.Errorf("a declared mean, the scale measured: %v", n)
	}
}

// TestFieldRefusals: what a field cannot hold is named by its row.
func TestFieldRefusals(t *testing.T) {
	form := Form{Height: 1, Width: 2, Channels: 2, Float: true, MeasureMean: true, MeasureScale: true}
	for name, c := range map[string]struct {
		values []float32
		row    int
		says   string
	}{
		"NaN":      {[]float32{1, 2, 3, 4, 5, float32(math.NaN()), 7, 8}, 1, "finite"},
		"infinite": {[]float32{float32(math.Inf(-1)), 2, 3, 4}, 0, "finite"},
		"constant": {[]float32{1, 5, 2, 5, 3, 5, 4, 5}, -1, "channel 1 is 5 everywhere"},
	} {
		w, err := Create(filepath.Join(t.TempDir(), "x"), form, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err = w.Float32(c.values, nil); err == nil {
			err = w.Commit(false)
		}
		w.Abort()
		var e *Error
		if !errors.As(err, &e) || e.Row != c.row || !strings.Contains(e.Msg, c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
	small := field()
	small.Normalization = &normalization.Affine{Mean: []float64{0, 0}, Scale: []float64{1, 1e-30}}
	small.Float32[6] = 1e20
	if _, err := New(small); err == nil || !strings.Contains(err.Error(), "row 1") {
		t.Errorf("a value that leaves float32: %v", err)
	}
	of := func(numbers ...float64) *normalization.Affine {
		return &normalization.Affine{Mean: numbers, Scale: numbers}
	}
	for name, form := range map[string]Form{
		"bytes with a scale":  {Height: 1, Width: 1, Channels: 1, MeasureScale: true},
		"three means for two": {Height: 1, Width: 1, Channels: 2, Float: true, Normalization: of(1, 1, 1)},
		"bytes with declared": {Height: 1, Width: 1, Channels: 1, Normalization: of(1)},
	} {
		if _, err := Create(filepath.Join(t.TempDir(), "x"), form, 0); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
