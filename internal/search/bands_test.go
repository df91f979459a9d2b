package search

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/internal/solvertest"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/local"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/solver/gaussian"
)

// wiener is the exact denoiser of a centred normal law of a variance in each part of some bands.
type wiener struct {
	bands    basis.Bands
	variance []float64
}

func (e wiener) Shape() (h, w, c int) { return e.bands.H, e.bands.W, e.bands.C }

func (e wiener) Statistics(context.Context, float64, *gaussian.Spectrum, func(done, total int),
) (*local.Statistics, error) {
	return nil, errors.New("nobody asks")
}

// weighted returns images [n, H, W, C] whose parts are multiplied by weights.
func weighted(images []float32, bands basis.Bands, weight func(part int) float64) (out []float32) {
	f, y := bands.Frequencies(nil), make([]float64, bands.H*bands.W*bands.C)
	index, _ := bands.Index()
	for image := range slices.Chunk(images, len(y)) {
		for i, v := range image {
			y[i] = float64(v)
		}
		f.Forward(y, y)
		for i := range y {
			y[i] *= weight(index[i/bands.C]*bands.C + i%bands.C)
		}
		f.Inverse(y, y)
		for _, v := range y {
			out = append(out, float32(v))
		}
	}
	return out
}

// Follow takes the trajectories in batches of three.
func (e wiener) Follow(_ context.Context, t sampler.Trajectories, into ...sampler.Reducer) error {
	size := e.bands.H * e.bands.W * e.bands.C
	for from := 0; from < len(t.Labels); from += 3 {
		x := make([]float32, min(3, len(t.Labels)-from)*size)
		for i := range len(x) / size {
			sampler.DrawLatent(t.Seed+uint64(from+i), x[i*size:(i+1)*size])
		}
		x = weighted(x, e.bands, func(int) float64 { return t.Plan.Init[0] })
		var history [][]float32
		for k := -1; k < len(t.Plan.Stages); k++ {
			var denoised []float32
			if k >= 0 {
				st := t.Plan.Stages[k]
				gain := func(part int) float64 { return e.variance[part] / (e.variance[part] + st.G[0]) }
				denoised = weighted(x, e.bands, gain)
				newest := [][]float32{denoised, x}
				if !t.Plan.Data {
					newest = [][]float32{weighted(x, e.bands, func(part int) float64 { return (gain(part) - 1) / math.Sqrt(st.G[0]) })}
				}
				history = append(newest, history...)
				x = combined(t.Plan, st, e.bands, x, history)
			}
			for _, r := range into {
				if r.EveryStage() || k == len(t.Plan.Stages)-1 {
					r.Add(k, x, denoised)
				}
			}
		}
	}
	return nil
}

// combined returns what a stage of a plan makes of a state and the history.
func combined(p *solver.Plan, st solver.Stage, bands basis.Bands, x []float32, history [][]float32) []float32 {
	part := func(int) int { return 0 }
	if p.Coordinates != nil {
		bands, part = p.Coordinates.Bands, func(own int) int { return own }
	}
	sum := weighted(x, bands, func(own int) float64 { return st.Alpha[part(own)] })
	for i := range len(st.Beta[0]) {
		for at, v := range weighted(history[i], bands, func(own int) float64 { return st.Beta[part(own)][i] }) {
			sum[at] += v
		}
	}
	return sum
}

// Of a normal law whose variance depends on the band alone, a band gets the coefficients that each of its frequencies
// gets, and they lead to the converged samples, whatever the variances that the fit begins at. A fit of one set for all
// parts cannot.
func TestFitInBands(t *testing.T) {
	bands := basis.Bands{H: 4, W: 4, C: 2, N: 4}
	index, _ := bands.Index()
	network, wrong := wiener{bands: bands}, []float64{}
	for part := range bands.Parts() {
		network.variance = append(network.variance, 2/math.Pow(float64(1+part), 2))
		wrong = append(wrong, 0.3*network.variance[part])
	}
	var byFrequency []float64
	for _, b := range index {
		byFrequency = append(byFrequency, wrong[b*2:b*2+2]...)
	}
	edm, err := schedule.EDM(100, schedule.DefaultG0)
	if err != nil {
		t.Fatal(err)
	}
	fit := func(s *local.Statistics, isotropic bool) (*solver.Fitted, *FitErrors) {
		fitted, missed, err := Fit(t.Context(), network, edm, s, FitSettings{
			Solver:  solver.Settings{Solver: solver.LocalName, NFE: 4, Grid: solver.Grid{Kind: solver.GridPolynomial}},
			Samples: 8, Isotropic: isotropic,
			Label: func(int, uint64) int32 { return -1 }, Report: func(int, int) {},
		})
		if err != nil {
			t.Fatal(err)
		}
		return fitted, missed
	}
	inBands := solvertest.Normal(t, bands, wrong)
	got, missed := fit(inBands, false)
	want, _ := fit(solvertest.Normal(t, basis.Bands{H: 4, W: 4, C: 2}, byFrequency), false)
	for i := range want.Alpha {
		for f := range want.Alpha[i] {
			part := index[f/2]*2 + f%2
			a := append([]float64{got.Alpha[i][part]}, got.Beta[i][part]...)
			for k, v := range append([]float64{want.Alpha[i][f]}, want.Beta[i][f]...) {
				if !(math.Abs(a[k]-v) < 1e-3*(1+math.Abs(v))) {
					t.Errorf("stage %d, coordinate %d: weights %v, its own are %v and %v", i, f, a, want.Alpha[i][f], want.Beta[i][f])
					break
				}
			}
		}
	}
	if !(missed.Fitted < 1e-2*missed.Local) {
		t.Errorf("fitted coefficients miss by %v, those begun at by %v", missed.Fitted, missed.Local)
	}
	one, rough := fit(inBands, true)
	if !(rough.Fitted > 10*missed.Fitted) || slices.Max(one.Alpha[0]) != slices.Min(one.Alpha[0]) {
		t.Errorf("one set of coefficients, %v, misses by %v, one for each band by %v", one.Alpha[0], rough.Fitted,
			missed.Fitted)
	}
}
