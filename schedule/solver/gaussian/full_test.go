package gaussian

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
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

// twoPaths is a schedule of two subspaces whose paths differ.
func twoPaths(t *testing.T) *schedule.Schedule { return slanted(t, 2, 400, 1e-6) }

// TestFullIsTheSpectrum: a law that is diagonal in the DCT has the same distances, whole
// and by band, whichever way they are computed.
func TestFullIsTheSpectrum(t *testing.T) {
	s := &Spectrum{H: 4, W: 4, C: 1}
	cov, mean := mat.NewSymDense(16, nil), make([]float64, 16)
	rows := basis.DCTRows(4, 4)
	for f := range 16 {
		d := Direction{Mean: 0.3 / float64(1+f), Variance: math.Pow(0.6, float64(f))}
		s.Directions = append(s.Directions, d)
		v := make([]float64, 16)
		for i := range v {
			v[i] = rows[f/4*4+i/4] * rows[f%4*4+i%4]
			mean[i] += d.Mean * v[i]
		}
		cov.SymRankOne(cov, d.Variance, mat.NewVecDense(16, v))
	}
	b, err := basis.DCT(4, 4, 4)
	if err != nil {
		t.Fatal(err)
	}
	law, err := (&Full{H: 4, W: 4, C: 1, Mean: mean, Cov: cov}).On(b, -1)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"euler", "heun", "ab", "ipndm", "dpmpp2m", "unipc"} {
		p := plan(t, solver.Settings{Solver: name, Steps: 6}, twoPaths(t))
		want, err := s.Bench(b, p)
		if err != nil {
			t.Fatal(err)
		}
		got, err := law.Bench(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		near(t, name+" spread", got.Spread, want.Spread, 1e-9)
		near(t, name+" shift", got.Shift, want.Shift, 1e-9)
		for j, band := range got.Bands {
			near(t, name+" band", band.W2, want.Bands[j].W2, 1e-9)
			near(t, name+" variance", band.Variance, want.Bands[j].Variance, 1e-9)
			if band.Dims != want.Bands[j].Dims {
				t.Errorf("%s: subspace %d has %d directions, want %d", name, j, band.Dims, want.Bands[j].Dims)
			}
		}
	}
}

// TestFullOnMixingBases: with the same path in each subspace the basis cannot matter,
// and with paths of their own many steps still make the law exact.
func TestFullOnMixingBases(t *testing.T) {
	all := images(200)
	law, err := MeasureFull(4, 4, 2, slices.Values(all))
	if err != nil {
		t.Fatal(err)
	}
	m := basis.NewMoments(4, 4)
	plane := make([]float64, 16)
	for _, im := range all {
		for i := range plane {
			plane[i] = (im[2*i] + im[2*i+1]) / 2
		}
		m.Add(plane)
	}
	c, err := m.Components(3)
	if err != nil {
		t.Fatal(err)
	}
	pca, err := basis.Dense(4, 4, map[int][][]float64{basis.Shared: c.Vectors})
	if err != nil {
		t.Fatal(err)
	}
	haar, err := basis.Haar(4, 4, 4)
	if err != nil {
		t.Fatal(err)
	}
	run := func(b *basis.Basis, sch *schedule.Schedule, steps int) *Report {
		t.Helper()
		split, err := law.On(b, -1)
		if err != nil {
			t.Fatal(err)
		}
		rep, err := split.Bench(t.Context(), plan(t, solver.Settings{Solver: "ab", Steps: steps}, sch))
		if err != nil {
			t.Fatal(err)
		}
		return rep
	}
	one := slanted(t, 1, 400, 1e-6)
	want := run(basis.None(4, 4), one, 6).W2
	if !(want > 1e-4) {
		t.Fatalf("W2² is %g after six steps: nothing to compare", want)
	}
	for name, b := range map[string]*basis.Basis{"pca": pca, "haar": haar} {
		same, err := one.Expand(schedule.Family{Basis: "haar"}, nil, 2)
		if err != nil {
			t.Fatal(err)
		}
		near(t, name+" with equal paths", run(b, same, 6).W2, want, 1e-8)
		few, many := run(b, slanted(t, 2, 1e5, 1e-8), 20), run(b, slanted(t, 2, 1e5, 1e-8), 320)
		if !(many.Spread < 1e-3*few.Spread) || !(few.Spread > 0) {
			t.Errorf("%s: the spread is %g after 20 steps, %g after 320", name, few.Spread, many.Spread)
		}
		if sum := few.Bands[0].W2 + few.Bands[1].W2; !(sum <= few.W2*(1+1e-9)) {
			t.Errorf("%s: marginal distances add up to %g, more than the whole %g", name, sum, few.W2)
		}
	}
}

func TestFullRefuses(t *testing.T) {
	field := func(name string, err error) {
		t.Helper()
		if e := (*Error)(nil); !errors.As(err, &e) || e.Field != name {
			t.Errorf("error %v, want one about %s", err, name)
		}
	}
	_, err := MeasureFull(4, 4, 2, slices.Values([][]float64(nil)))
	field("dataset", err)
	_, err = MeasureFull(4, 4, 2, slices.Values([][]float64{make([]float64, 31)}))
	field("dataset", err)
	_, err = MeasureFull(64, 64, 1, slices.Values([][]float64(nil)))
	field("dataset", err)
	law, err := MeasureFull(4, 4, 2, slices.Values(images(40)))
	if err != nil {
		t.Fatal(err)
	}
	_, err = law.On(basis.None(8, 8), -1)
	field("basis", err)
	split, err := law.On(basis.None(4, 4), -1)
	if err != nil {
		t.Fatal(err)
	}
	_, err = split.Bench(t.Context(), plan(t, solver.Settings{Steps: 3}, twoPaths(t)))
	field("schedule", err)
	_, err = split.Bench(t.Context(), plan(t, solver.Settings{Steps: 3, SChurn: 5}, slanted(t, 1, 400, 1e-6)))
	field("S_churn", err)
}
