package compare

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/mat"
)

// Along common axes the distance is |m_a − m_b|² + Σ (√a_i − √b_i)².
func TestFrechetDistanceOfKnownGaussians(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	random := mat.NewDense(4, 4, nil)
	random.Apply(func(_, _ int, _ float64) float64 { return rng.NormFloat64() }, random)
	var qr mat.QR
	qr.Factorize(random)
	var axes mat.Dense
	qr.QTo(&axes)
	gaussian := func(mean, variances []float64) Moments {
		var scaled, cov mat.Dense
		scaled.Apply(func(_, j int, v float64) float64 { return v * variances[j] }, &axes)
		cov.Mul(&scaled, axes.T())
		return Moments{Mean: mean, Cov: symmetric(&cov)}
	}
	a, b := []float64{0.1, 4, 2, 1}, []float64{0, 1, 3, 0.5} // one direction without variance
	want := 1.0 + 4
	for i := range a {
		d := math.Sqrt(a[i]) - math.Sqrt(b[i])
		want += d * d
	}
	p, q := gaussian([]float64{1, 0, 0, 0}, a), gaussian([]float64{0, 0, 2, 0}, b)
	for _, pair := range [][2]Moments{{p, q}, {q, p}} {
		got, err := FrechetDistance(pair[0], pair[1])
		if err != nil || math.Abs(got-want) > 1e-7 {
			t.Errorf("distance %.10g (%v), want %.10g", got, err, want)
		}
	}
	if got, err := FrechetDistance(p, p); err != nil || math.Abs(got) > 1e-9 {
		t.Errorf("distance to itself %g, %v", got, err)
	}
}

// cloud are images of two values, normal with deviations 0.2 and 0.1 about the mean.
func cloud(n int, seed uint64, mean float32) Images {
	rng := rand.New(rand.NewPCG(seed, 0))
	im := Images{N: n, D: 2}
	for range n {
		im.Values = append(im.Values, mean+0.2*float32(rng.NormFloat64()), mean+0.1*float32(rng.NormFloat64()))
	}
	return im
}

func TestReferenceSeesLeadingComponents(t *testing.T) {
	real := cloud(4000, 1, 0)
	moved := Images{N: real.N, D: 2, Values: slices.Clone(real.Values)}
	for i := 1; i < len(moved.Values); i += 2 {
		moved.Values[i] += 0.3 // along the second component alone
	}
	for k, want := range map[int]float64{1: 0, 2: 0.09, 9: 0.09} {
		r, err := NewReference(real, k)
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Distance(moved)
		if err != nil || math.Abs(got-want) > 2e-3 {
			t.Errorf("k = %d: distance %g (%v), want %g", k, got, err, want)
		}
	}
	far := Images{N: 3, D: 2, Values: []float32{1, 1, 5, -9, -1, 1}}
	if got := far.clamped().RawMatrix().Data; !slices.Equal(got, []float64{1, 1, 1, -1, -1, 1}) {
		t.Errorf("clamped values %v", got)
	}
	if _, err := NewReference(real, 0); err == nil {
		t.Error("no components are accepted")
	}
	r, _ := NewReference(real, 1)
	if _, err := r.Distance(Images{N: 2, D: 3, Values: make([]float32, 6)}); err == nil {
		t.Error("images of another size are accepted")
	}
}

// A sampler whose images are off by 0.3/nfe, and one that cannot do NFE 1.
func TestRun(t *testing.T) {
	few := errors.New("too few evaluations")
	var seeds []uint64
	compiled := map[int]bool{}
	draw := func(_ context.Context, n int, seed uint64, o Options) (Images, int, error) {
		nfe, sampled := o["nfe"].(int)
		if sampled && nfe == 1 && o["solver"] == "second" {
			return Images{}, 0, few
		}
		if !compiled[n] { // as programs are, when first needed
			compiled[n] = true
			time.Sleep(300 * time.Millisecond)
		}
		if seed != ProbeSeed {
			seeds = append(seeds, seed)
		}
		off := float32(0)
		if sampled {
			off = 0.3 / float32(nfe)
		} else if seed == 0 && o["steps"] == 1 {
			return Images{}, 1, nil
		} else if o["steps"] != 60 || o["schedule"] != "s" || o["grid"] != "edm" {
			t.Errorf("converged solution with %v", o)
		}
		return cloud(n, seed, off), nfe, nil
	}
	reference, err := NewReference(cloud(4000, 9, 0), 2)
	if err != nil {
		t.Fatal(err)
	}
	plan := Plan{
		Schedules: []Choice{{"s", Options{"schedule": "s"}}}, Grids: []Choice{{"g", Options{"grid": "g"}}},
		Solvers: []Choice{{"first", Options{"solver": "first"}}, {"second", Options{"solver": "second"}}},
		NFE:     []int{1, 3}, Probes: 50, Samples: 1000, Seeds: 2, Reference: reference,
	}
	var rows []Row
	isFew := func(err error) bool { return errors.Is(err, few) }
	if err := Run(t.Context(), plan, draw, isFew, func(r Row) { rows = append(rows, r) }); err != nil {
		t.Fatal(err)
	}
	if len(rows) != plan.Cells() {
		t.Fatalf("%d rows, want %d", len(rows), plan.Cells())
	}
	for i, want := range []float64{30, 10, 0, 10} {
		r := rows[i]
		if i == 2 {
			if !errors.Is(r.Err, few) || r.Frechet != nil {
				t.Errorf("row %+v, want its error", r)
			}
			continue
		}
		if math.Abs(r.ODEError-want) > 1e-3 || r.Evaluations != r.NFE {
			t.Errorf("row %+v, want ODE error %g", r, want)
		}
		if r.Seconds > 0.1 {
			t.Errorf("row %+v took %g s for 1000, which counts what is done once", r, r.Seconds)
		}
		if truth := 2 * (want / 100) * (want / 100); math.Abs(r.Frechet.Mean-truth) > 0.1*truth || r.Frechet.Min > r.Frechet.Max {
			t.Errorf("row %+v has Fréchet %+v, want %g", r, *r.Frechet, truth)
		}
	}
	if want := []uint64{0, 0, 1000, 0, 1000, 0, 1000}; !slices.Equal(seeds, want) {
		t.Errorf("seeds %v, want %v", seeds, want)
	}
	if err := Run(t.Context(), plan, draw, func(error) bool { return false }, func(Row) {}); !errors.Is(err, few) {
		t.Errorf("an error that is no cell's own gives %v", err)
	}
}
