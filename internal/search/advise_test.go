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
	"github.com/anisoflight/anisoflight/train/data"
	"github.com/anisoflight/anisoflight/train/passes"
)

func advice(t *testing.T, d *data.Dataset, set AdviceSettings) *Advice {
	t.Helper()
	out, err := Advise(t.Context(), d, set)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// dataset is one of images of 2×2 pixels.
func dataset(t *testing.T, images ...float32) *data.Dataset {
	t.Helper()
	d, err := data.New(data.Images{Height: 2, Width: 2, Channels: 1, Float32: images, Unbounded: true})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Four images ±a e_00 ± b e_01 of 2×2 pixels, e_uv the functions of the DCT, have the variances a² and b², and none in
// the other two directions.
func TestAdviseOnKnownGaussian(t *testing.T) {
	const a, b = 1.0, 0.05
	var images []float32
	for _, s := range [][2]float32{{a, b}, {a, -b}, {-a, b}, {-a, -b}} {
		left, right := (s[0]+s[1])/2, (s[0]-s[1])/2
		images = append(images, left, right, left, right)
	}
	got := advice(t, dataset(t, images...), AdviceSettings{NFE: []int{5, 18}})
	near := func(what string, have, want, tolerance float64) {
		t.Helper()
		if !(math.Abs(have-want) <= tolerance) {
			t.Errorf("%s %v, want %v", what, have, want)
		}
	}
	sigma := math.Sqrt((a*a + b*b) / 4)
	near("σ_data", got.SigmaData, sigma, 1e-6)
	near("σ_min", got.SigmaMin, 0.002*sigma/0.5, 1e-8)
	near("c", got.C, a*a+b*b, 1e-6)
	near("T", got.T, got.SigmaMax*got.SigmaMax, 1e-12)
	near("mean image", got.Mean, 0, 1e-7)
	if got.Images != 4 || math.Abs(got.Variance[0]-a*a) > 1e-6 || math.Abs(got.Variance[1]-b*b/3) > 1e-6 {
		t.Errorf("variances %v of %d images", got.Variance, got.Images)
	}
	var missed float64
	for _, v := range []float64{a * a, b * b} {
		missed += v * math.Pow(1-math.Sqrt(got.T/(got.T+v)), 2)
	}
	near("missed from √T", missed, 1e-3*(a*a+b*b), 1e-8)

	r := func(s float64) float64 {
		return (a*a/(a*a+s*s) + b*b/(b*b+s*s)) / 4 * (s*s + sigma*sigma) / (sigma * sigma)
	}
	mean, std, _ := gaussian.TrainingLevels(got.Sigma, got.Ratio)
	near("r", got.Ratio[9], r(got.Sigma[9]), 1e-7)
	near("P_mean", got.PMean, mean, 0)
	near("P_std", got.PStd, std, 0)

	s := got.Subspaces // a direction each on either side of the cut: little to gain
	if s.Basis != basis.KindDCT || !slices.Equal(s.Cuts, []int{1}) || s.GainStderr != 0 || s.Gain < 0 || s.Gain > 0.1 {
		t.Errorf("subspaces %+v", s)
	}
	edm, err := OnEDM(got.Law, solver.Settings{Solver: "heun", NFE: 5}, schedule.DefaultG0, got.T)
	if err != nil {
		t.Fatal(err)
	}
	w := got.Samplers[0]
	if w.NFE != 5 || !(w.IPNDM < w.EDM) || !(w.Heun < w.EDM) || got.Samplers[1].NFE != 18 {
		t.Errorf("samplers %+v", got.Samplers)
	}
	if edm.Sampler.Grid.Kind == solver.GridEDM {
		near("W2² of Heun's method", w.EDM, edm.W2, 1e-12)
	}
}

// A network that is the data's Gaussian leaves what the Gaussian leaves, and so changes nothing but what its own noise
// levels end: T and σ_max.
func TestAdviseWithNetwork(t *testing.T) {
	d := ensembletest.Smooth(8, 1).Data(t, 200)
	law, _, err := passes.MeasureSpectrum(t.Context(), d, func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	set := AdviceSettings{NFE: []int{3}, Samples: 8}
	alone := advice(t, d, set)
	set.Survey = func(_ context.Context, set passes.PredictSettings) (*passes.Survey, error) {
		return passes.GaussianSurvey(law, set), nil
	}
	got := advice(t, d, set)
	for i, r := range got.NetworkRatio {
		if math.Abs(r-got.Ratio[i]) > 1e-9 {
			t.Errorf("at σ %g the network leaves %g, the Gaussian %g", got.Sigma[i], r, got.Ratio[i])
		}
	}
	if n := len(got.NetworkRatio); n != surveyPoints || n >= len(got.Sigma) || alone.NetworkRatio != nil {
		t.Errorf("the network is measured at %d of %d levels", n, len(got.Sigma))
	}
	if math.Abs(alone.PMean-got.PMean) > 0.05 || math.Abs(alone.PStd-got.PStd) > 0.05 {
		t.Errorf("P_mean and P_std %g, %g, on the Gaussian %g, %g", got.PMean, got.PStd, alone.PMean, alone.PStd)
	}
	set.Known = schedule.Range{Min: 0.002, Max: 0.5}
	low := advice(t, d, set)
	if low.T != 0.25 || low.SigmaMax != 0.5 || low.Needed != alone.SigmaMax || !(low.Needed > 0.5) {
		t.Errorf("T %g, σ_max %g, needed %g", low.T, low.SigmaMax, low.Needed)
	}
}

// White data leave nothing to learn, and images that are alike nothing to advise.
func TestAdviseOnNothing(t *testing.T) {
	var white []float32 // ±½ on every pixel, each with each
	for i := range 16 {
		for k := range 4 {
			white = append(white, float32(i>>k&1)-0.5)
		}
	}
	got := advice(t, dataset(t, white...), AdviceSettings{})
	if !got.White || math.Abs(got.PMean-(-1.2)) > 1e-6 || got.PStd != 1.2 || math.Abs(got.SigmaData-0.5) > 1e-6 {
		t.Errorf("white data: P_mean %g, P_std %g, σ_data %g", got.PMean, got.PStd, got.SigmaData)
	}
	_, err := Advise(t.Context(), dataset(t, 1, 2, 3, 4, 1, 2, 3, 4), AdviceSettings{})
	if flat, ok := errors.AsType[*FlatError](err); !ok || flat.Variance != 0 {
		t.Errorf("images that are alike: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	set := AdviceSettings{NFE: []int{5}, Progress: NewProgress(func(part string, _, _ int) {
		if part == "samplers" {
			cancel()
		}
	})}
	if _, err := Advise(ctx, dataset(t, white...), set); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
