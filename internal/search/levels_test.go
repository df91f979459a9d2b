package search

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/internal/testing/ensembletest"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/solver/gaussian"
	"github.com/anisoflight/anisoflight/schedule/start"
	"github.com/anisoflight/anisoflight/train/data"
)

// spectrum is the Gaussian of images of 8×8 pixels whose variance falls with the frequency.
func spectrum(t *testing.T) (*gaussian.Spectrum, *Images) {
	t.Helper()
	images, err := MeasureImages(t.Context(), ensembletest.Smooth(8, 1).Data(t, 100), func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	return images.Spectrum, images
}

func levels(t *testing.T, law *gaussian.Spectrum, b *basis.Basis, set gaussian.Settings) *GaussianLevels {
	t.Helper()
	out, err := Levels(t.Context(), law, b, set)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The levels beat EDM's by far, more subspaces are no worse than one, and the parts of the bands add up.
func TestLevelsBeatEDMs(t *testing.T) {
	law, _ := spectrum(t)
	dct, err := basis.DCT(8, 8, 16)
	if err != nil {
		t.Fatal(err)
	}
	set := gaussian.Settings{
		Sampler: solver.Settings{Solver: "dpmpp2m", NFE: 5}, T: 400, G0: schedule.DefaultG0,
		Family: schedule.Family{Basis: basis.KindNone},
	}
	one := levels(t, law, basis.None(8, 8), set)
	set.Family = schedule.Family{Basis: basis.KindDCT, K: 16}
	two := levels(t, law, dct, set)
	if !(two.Report.W2 <= one.Report.W2) {
		t.Errorf("W2² is %g with two subspaces, %g with one", two.Report.W2, one.Report.W2)
	}
	for _, l := range []*GaussianLevels{one, two} {
		if !(l.Report.W2 > 0 && l.Report.W2 < l.EDM.W2/2) || l.EDM.Sampler.NFE != 5 || l.Sampler.NFE != 5 {
			t.Errorf("the levels are at %g, EDM's at %g", l.Report.W2, l.EDM.W2)
		}
		for _, report := range []*gaussian.Report{l.Report, l.EDM.Report} {
			var dims int
			var variance, w2 float64
			for _, band := range report.Bands {
				dims, variance, w2 = dims+band.Dims, variance+band.Variance, w2+band.W2
			}
			if dims != 64 || math.Abs(variance-1) > 1e-9 || math.Abs(w2/report.W2-1) > 1e-9 {
				t.Errorf("%d bands of %d directions have %g of the variance, and W2² %g of %g", len(report.Bands), dims,
					variance, w2, report.W2)
			}
		}
	}
}

// The levels of every subspace run from one end of the schedule to the other, in as many steps as the solver takes.
func TestLevelsAreThoseOfTheSteps(t *testing.T) {
	law, _ := spectrum(t)
	dct, err := basis.DCT(8, 8, 16)
	if err != nil {
		t.Fatal(err)
	}
	for name, q := range map[string]struct{ nfe, steps int }{"ipndm": {4, 4}, "heun": {5, 2}, "unipc": {6, 6}} {
		l := levels(t, law, dct, gaussian.Settings{
			Sampler: solver.Settings{Solver: name, NFE: q.nfe}, T: 400, G0: 1e-6,
			Family: schedule.Family{Basis: basis.KindDCT, K: 16},
		})
		if l.Sampler.Steps != q.steps || l.Schedule.J() != 2 {
			t.Errorf("%s: %d steps, want %d", name, l.Sampler.Steps, q.steps)
		}
		for j := range l.Schedule.J() {
			path := l.Schedule.At(0, j)
			if tau, _ := path.Knots(); len(tau) != q.steps+1 || path.G0() != 1e-6 || path.GT() != 400 {
				t.Errorf("%s: subspace %d has %d levels from %g to %g", name, j, len(tau), path.G0(), path.GT())
			}
		}
	}
}

// From the law of the data there is no price of the start to pay.
func TestLevelsFromTheLaw(t *testing.T) {
	law, images := spectrum(t)
	matched, err := law.StartedFrom(images.Start.Law(start.Shared))
	if err != nil {
		t.Fatal(err)
	}
	set := gaussian.Settings{
		Sampler: solver.Settings{Solver: "dpmpp2m", NFE: 4}, T: 25, G0: schedule.DefaultG0,
		Family: schedule.Family{Basis: basis.KindNone},
	}
	b := basis.None(8, 8)
	noise, ours := levels(t, law, b, set), levels(t, matched, b, set)
	if !(ours.Report.W2 < noise.Report.W2) {
		t.Errorf("W2² %g from noise, %g from the data's law", noise.Report.W2, ours.Report.W2)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Levels(ctx, law, b, set); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
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
