package search

import (
	"math"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/internal/testing/ensembletest"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/solver/gaussian"
	"github.com/anisoflight/anisoflight/train/data"
)

// The levels beat EDM's by far, and more subspaces are no worse than one.
func TestLevelsBeatEDMs(t *testing.T) {
	images, err := MeasureImages(t.Context(), ensembletest.Smooth(8, 1).Data(t, 100), func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	law := images.Spectrum
	dct, err := basis.DCT(8, 8, 16)
	if err != nil {
		t.Fatal(err)
	}
	set := gaussian.Settings{
		Sampler: solver.Settings{Solver: "dpmpp2m", NFE: 5}, T: 400, G0: schedule.DefaultG0,
		Family: schedule.Family{Basis: basis.KindNone},
	}
	last := math.Inf(1)
	for _, b := range []*basis.Basis{basis.None(8, 8), dct} {
		l, err := Levels(t.Context(), law, b, set)
		if err != nil {
			t.Fatal(err)
		}
		if !(l.Report.W2 <= last) {
			t.Errorf("W2² is %g with %d subspaces, %g with one", l.Report.W2, b.J(), last)
		}
		last, set.Family = l.Report.W2, schedule.Family{Basis: basis.KindDCT, K: 16}
		if !(l.Report.W2 > 0 && l.Report.W2 < l.EDM.W2/2) || l.EDM.Sampler.NFE != 5 || l.Sampler.NFE != 5 {
			t.Errorf("the levels are at %g, EDM's at %g", l.Report.W2, l.EDM.W2)
		}
	}
}

// One pass measures the Gaussians of all images and of classes.
func TestSpectra(t *testing.T) {
	d, err := data.New(data.Images{
		Height: 1, Width: 2, Channels: 1, Float32: []float32{1, 2, 3, 5, 5, 6}, Labels: []int32{0, 1, 0}, Unbounded: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	var done []int
	got, err := Spectra(t.Context(), d, []int{-1, 0}, func(n, total int) { done = append(done, n, total) })
	if err != nil || !slices.Equal(done, []int{3, 3}) {
		t.Fatalf("%v, %v", done, err)
	}
	sum := (3.0*3 + 8*8 + 11*11) / 2 // of squares along the mean, (x + y)/√2
	want := map[int]float64{-1: sum/3 - math.Pow(22.0/3, 2)/2, 0: (3.0*3+11*11)/4 - 7*7/2.0}
	for label, s := range got {
		if math.Abs(s.Directions[0].Variance-want[label]) > 1e-9 {
			t.Errorf("class %d has the variance %g along the mean, want %g", label, s.Directions[0].Variance, want[label])
		}
	}
	if len(got) != 2 {
		t.Errorf("%d laws", len(got))
	}
}
