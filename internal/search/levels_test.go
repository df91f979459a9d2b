package search

import (
	"math"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/internal/testing/ensembletest"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/train/data"
)

// The better grid to the better end is taken.
func TestTheBestOfEDMsLevels(t *testing.T) {
	images, err := MeasureImages(t.Context(), ensembletest.Smooth(8, 1).Data(t, 100), true, func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	sampler := solver.Settings{Solver: "dpmpp2m", NFE: 5}
	best, err := OnEDM(images.Spectrum, sampler, schedule.DefaultG0, 400, 6400)
	if err != nil {
		t.Fatal(err)
	}
	for _, T := range []float64{400, 6400} {
		edm, err := schedule.EDM(T, schedule.DefaultG0)
		if err != nil {
			t.Fatal(err)
		}
		for _, grid := range []string{solver.GridEDM, solver.GridPolynomial} {
			sampler.Grid.Kind = grid
			report, err := images.Spectrum.BenchSampler(basis.None(8, 8), sampler, edm)
			if err != nil {
				t.Fatal(err)
			}
			if taken := best.T == T && best.Sampler.Grid.Kind == grid; (report.W2 <= best.W2) != taken {
				t.Errorf("%s to %g has %g, taken is %s to %g with %g", grid, T, report.W2, best.Sampler.Grid.Kind, best.T, best.W2)
			}
		}
	}
	if best.Sampler.NFE != 5 {
		t.Errorf("%d evaluations", best.Sampler.NFE)
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
