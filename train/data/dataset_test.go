package data

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/internal/base/safely"
)

func mustNew(tb testing.TB, im Images) *Dataset {
	tb.Helper()
	d, err := New(im)
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

// open loads a data set.
func open(tb testing.TB, dir string) *Dataset {
	tb.Helper()
	d, err := Load(dir)
	if err != nil {
		tb.Fatal(err)
	}
	return d
}

// reopened is what a data set is when it has been stored in a new folder.
func reopened(tb testing.TB, im Images) (d *Dataset, dir string) {
	tb.Helper()
	dir = filepath.Join(tb.TempDir(), "x")
	if err := save(dir, mustNew(tb, im), false); err != nil {
		tb.Fatal(err)
	}
	return open(tb, dir), dir
}

// save stores a data set as a folder.
func save(dir string, d *Dataset, replace bool) error {
	w, err := Create(dir, d.Form(), d.Len())
	if err != nil {
		return err
	}
	defer w.Abort()
	if d.IsFloat() {
		err = w.Float32(d.images.Float32, d.images.Labels)
	} else {
		err = w.Uint8(d.images.Uint8, d.images.Labels)
	}
	if err != nil {
		return err
	}
	return w.Commit(replace)
}

func TestImage(t *testing.T) {
	hwc := mustNew(t, Images{
		Height: 1, Width: 2, Channels: 2, Uint8: []uint8{0, 255, 51, 102, 1, 2, 3, 4},
		Labels: []int32{1, -1},
	})
	chw := mustNew(t, Images{Height: 1, Width: 2, Channels: 2, Layout: CHW, Float32: []float32{-1, -0.6, 1, -0.2}})
	got := make([]float32, 4)
	for _, c := range []struct {
		name string
		d    *Dataset
		flip bool
		want []float32
	}{
		{"uint8", hwc, false, []float32{-1, 1, -0.6, -0.2}},
		{"uint8 mirrored", hwc, true, []float32{-0.6, -0.2, -1, 1}},
		{"channels first", chw, false, []float32{-1, 1, -0.6, -0.2}},
		{"channels first mirrored", chw, true, []float32{-0.6, -0.2, -1, 1}},
	} {
		if err := c.d.Image(0, c.flip, got); err != nil {
			t.Fatal(err)
		}
		for i := range got {
			if math.Abs(float64(got[i]-c.want[i])) > 1e-6 {
				t.Errorf("%s: %v, want %v", c.name, got, c.want)
				break
			}
		}
	}
	if hwc.Classes() != 2 || hwc.Label(0) != 1 || hwc.Label(1) != -1 || chw.Label(0) != -1 || chw.HasLabels() ||
		!hwc.HasLabels() {
		t.Errorf("classes %d, labels %d, %d, %d", hwc.Classes(), hwc.Label(0), hwc.Label(1), chw.Label(0))
	}
	if !reflect.DeepEqual(chw.Shape(), []int{2, 1, 2}) || !reflect.DeepEqual(hwc.Shape(), []int{1, 2, 2}) {
		t.Errorf("shapes %v, %v", hwc.Shape(), chw.Shape())
	}
}

// TestEach: the blocks are the images and labels in order, or those of the indices; a block depends on the size of an
// image alone. An error of use, a panic of it and the end of the context end the walk.
func TestEach(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	const n, h, w, c = 600, 3, 2, 2
	const size = h * w * c
	rng := rand.New(rand.NewPCG(1, 2))
	bytes := Images{Height: h, Width: w, Channels: c, Layout: CHW, Uint8: make([]uint8, n*size), Labels: make([]int32, n)}
	floats := Images{Height: h, Width: w, Channels: c, Float32: make([]float32, n*size)}
	for i := range bytes.Uint8 {
		bytes.Uint8[i], floats.Float32[i] = uint8(rng.IntN(256)), 2*rng.Float32()-1
	}
	for i := range bytes.Labels {
		bytes.Labels[i] = int32(rng.IntN(4)) - 1
	}
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	for _, d := range []*Dataset{mustNew(t, bytes), mustNew(t, floats)} {
		for _, which := range [][]int{nil, {}, {5}, {599, 0, 0, 3}, slices.Concat(all, all[:7])} {
			order := which
			if which == nil {
				order = all
			}
			for _, cores := range []int{1, 3} {
				runtime.GOMAXPROCS(cores)
				var blocks, done []int
				at, im := 0, make([]float32, size)
				report := func(n, total int) { done = append(done, n, total) }
				err := d.Each(t.Context(), which, report, func(labels []int32, images []float64) error {
					blocks = append(blocks, len(labels))
					for i, label := range labels {
						if err := d.Image(order[at], false, im); err != nil {
							return err
						}
						for k, v := range im {
							if images[i*size+k] != float64(v) || label != d.Label(order[at]) {
								t.Fatalf("image %d of %v is not as Image gives it", at, which)
							}
						}
						at++
					}
					return nil
				})
				if err != nil || at != len(order) {
					t.Fatalf("%d images of %d, %v", at, len(order), err)
				}
				if want := []int{256, 256, at - 512}; at > 512 && !slices.Equal(blocks, want) {
					t.Errorf("blocks of %v images, want %v", blocks, want)
				}
				if want := []int{256, at, 512, at, at, at}; at > 512 && !slices.Equal(done, want) {
					t.Errorf("reported %v, want %v", done, want)
				}
			}
		}
	}
	d, calls := mustNew(t, bytes), 0
	refused := errors.New("refused")
	err := d.Each(t.Context(), nil, nil, func([]int32, []float64) error { calls++; return refused })
	if !errors.Is(err, refused) || calls != 1 {
		t.Errorf("%v after %d blocks", err, calls)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err = d.Each(ctx, nil, nil, func([]int32, []float64) error { calls++; cancel(); return nil })
	if !errors.Is(err, context.Canceled) || calls != 2 {
		t.Errorf("%v after %d blocks", err, calls-1)
	}
	var p *safely.Panic
	runtime.GOMAXPROCS(3)
	err = safely.Do(func() error { return d.Each(t.Context(), []int{n}, nil, nil) })
	if !errors.As(err, &p) {
		t.Errorf("an index of no image: %v", err)
	}
}

func TestRefusals(t *testing.T) {
	nan := float32(math.NaN())
	for name, c := range map[string]struct {
		im  Images
		row int
	}{
		"NaN":            {Images{Height: 2, Width: 1, Channels: 1, Float32: []float32{0, 0, nan, 0}}, 1},
		"infinite":       {Images{Height: 2, Width: 1, Channels: 1, Float32: []float32{float32(math.Inf(-1)), 0}}, 0},
		"too bright":     {Images{Height: 2, Width: 1, Channels: 1, Float32: []float32{0, 1.00001}}, 0},
		"label":          {Images{Height: 2, Width: 1, Channels: 1, Uint8: []uint8{1, 2, 3, 4}, Labels: []int32{0, -2}}, 1},
		"short labels":   {Images{Height: 2, Width: 1, Channels: 1, Uint8: []uint8{1, 2, 3, 4}, Labels: []int32{0}}, -1},
		"part of one":    {Images{Height: 2, Width: 1, Channels: 1, Uint8: []uint8{1, 2, 3}}, -1},
		"empty":          {Images{Height: 2, Width: 1, Channels: 1, Uint8: []uint8{}}, -1},
		"both types":     {Images{Height: 1, Width: 1, Channels: 1, Uint8: []uint8{1}, Float32: []float32{1}}, -1},
		"no height":      {Images{Width: 1, Channels: 1, Uint8: []uint8{1, 2}}, -1},
		"unknown layout": {Images{Height: 1, Width: 1, Channels: 1, Layout: "WHC", Uint8: []uint8{1}}, -1},
	} {
		_, err := New(c.im)
		var e *Error
		if !errors.As(err, &e) || e.Row != c.row {
			t.Errorf("%s: error %v, want one about row %d", name, err, c.row)
		}
	}
	if _, err := New(Images{Height: 1, Width: 1, Channels: 1, Float32: []float32{1 + 5e-7}}); err != nil {
		t.Errorf("rounding beyond 1 refused: %v", err)
	}
}

// Equal data sets have equal hashes, and whatever differs changes it.
func TestHash(t *testing.T) {
	base := Images{Height: 2, Width: 2, Channels: 1, Uint8: []uint8{0, 1, 2, 3, 4, 5, 6, 7}, Labels: []int32{0, 1}}
	hash := func(change func(*Images)) string {
		im := base
		im.Uint8, im.Labels = slices.Clone(base.Uint8), slices.Clone(base.Labels)
		change(&im)
		d := mustNew(t, im)
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
		"layout":    func(im *Images) { im.Layout = CHW },
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
