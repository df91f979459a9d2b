package gaussian

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/start"
)

// images draws n images of 4×4 pixels in two channels, correlated across both.
func images(n int) [][]float64 {
	rng := rand.New(rand.NewPCG(5, 0))
	mix := make([]float64, 32*32)
	for i := range mix {
		mix[i] = 0.1 * rng.NormFloat64()
	}
	out := make([][]float64, n)
	for k := range out {
		out[k] = make([]float64, 32)
		for j := range 32 {
			z := rng.NormFloat64() / (1 + float64(j))
			for i := range 32 {
				out[k][i] += z*mix[i*32+j] + 0.01*float64(i)/float64(n)
			}
		}
	}
	return out
}

// startOf measures the law of all images.
func startOf(t *testing.T, of [][]float64) *start.Law {
	t.Helper()
	e := start.NewEstimator(4, 4, 2, false, nil)
	for _, im := range of {
		if err := e.Add([]int32{-1}, im); err != nil {
			t.Fatal(err)
		}
	}
	s, err := e.Start()
	if err != nil {
		t.Fatal(err)
	}
	return s.Law(start.Shared)
}

// TestMatchedStartHasNoError: started from the data's own law a converged sampler ends in it, from any noise level.
// From noise alone it misses the mean and the spread.
func TestMatchedStartHasNoError(t *testing.T) {
	of := images(200)
	data := spectrumOf(t, of)
	matched, err := data.StartedFrom(startOf(t, of))
	if err != nil {
		t.Fatal(err)
	}
	b, err := basis.DCT(4, 4, 4)
	if err != nil {
		t.Fatal(err)
	}
	for _, T := range []float64{25, 1, 0.04} {
		for _, sch := range []*schedule.Schedule{isotropic(t, T, 1e-10), slanted(t, 2, T, 1e-10)} {
			of := b
			if sch.J() == 1 {
				of = basis.None(4, 4)
			}
			p := plan(t, solver.Settings{Solver: "heun", Steps: 400}, sch)
			was, err := data.Bench(of, p)
			if err != nil {
				t.Fatal(err)
			}
			got, err := matched.Bench(of, p)
			if err != nil {
				t.Fatal(err)
			}
			if got.W2 > 1e-7 || was.W2 < 1e3*got.W2 {
				t.Errorf("T = %v, J = %d: W2² %v from the data's law, %v from noise", T, sch.J(), got.W2, was.W2)
			}
		}
	}
}

// TestMatched: the spectrum's own law is that of its images, with the directions of a frequency by falling variance.
func TestMatched(t *testing.T) {
	of := images(200)
	data := spectrumOf(t, of)
	want, err := data.StartedFrom(startOf(t, of))
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range data.WithMatchedStart().Directions {
		near(t, "mean", d.Start.Mean, want.Directions[i].Start.Mean, 1e-9)
		near(t, "variance", d.Start.Variance, want.Directions[i].Start.Variance, 1e-9)
		if i%2 == 1 && d.Variance > data.Directions[i-1].Variance {
			t.Errorf("variance %v after %v", d.Variance, data.Directions[i-1].Variance)
		}
	}
	if data.Directions[0].Start != nil {
		t.Error("the spectrum itself has a start")
	}
}

// TestFromRefusesWhatIsNotDiagonal: a law that correlates the spectrum's directions has no bench.
func TestFromRefusesWhatIsNotDiagonal(t *testing.T) {
	of := images(50)
	channels := *startOf(t, of)
	channels.Axes = nil
	if _, err := spectrumOf(t, of).StartedFrom(&channels); err == nil {
		t.Error("channels that correlate are called diagonal")
	}
}

// TestNodesFromTheMatchedStart: nodes chosen from the data's law have no price of the start to pay, so they beat those
// from noise, and a shorter way beats a longer one.
func TestNodesFromTheMatchedStart(t *testing.T) {
	of := images(200)
	data := spectrumOf(t, of)
	matched, err := data.StartedFrom(startOf(t, of))
	if err != nil {
		t.Fatal(err)
	}
	choose := func(s *Spectrum, T float64) float64 {
		set := Settings{Sampler: solver.Settings{Solver: "dpmpp2m", NFE: 4}, T: T, G0: 1e-8}
		return traded(t, s, basis.None(4, 4), set, 0, tieShare).Report.W2
	}
	noise, long, short := choose(data, 25), choose(matched, 25), choose(matched, 1)
	if !(long < noise && short < long) || math.IsNaN(short) {
		t.Errorf("W2² %v from noise, %v from the data's law at T = 25, %v at T = 1", noise, long, short)
	}
}
