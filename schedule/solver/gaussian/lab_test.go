package gaussian

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// patches is the spectrum of all 8×8 crops of scikit-learn's two sample photographs, averaged over 2×2 pixels, in [−1,
// 1] (testdata, made by an independent program).
func patches(t testing.TB) *Spectrum {
	t.Helper()
	text, err := os.ReadFile("testdata/patches8.json")
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		H, W, C        int
		Variance, Mean [][]float64
	}
	if err := json.Unmarshal(text, &f); err != nil {
		t.Fatal(err)
	}
	s := &Spectrum{H: f.H, W: f.W, C: f.C}
	for i, row := range f.Variance {
		for k, v := range row {
			s.Directions = append(s.Directions, Direction{Mean: f.Mean[i][k], Variance: v})
		}
	}
	return s
}

// bands is the Gaussian of the band variances alone: centred, the same in each channel.
func bands(t testing.TB) *Spectrum {
	s := patches(t)
	for at := range slices.Chunk(s.Directions, s.C) {
		var v float64
		for _, d := range at {
			v += d.Variance / float64(s.C)
		}
		for k := range at {
			at[k] = Direction{Variance: v}
		}
	}
	return s
}

// split is a basis of 8×8 planes: none, or DCT bands.
func split(t testing.TB, cuts ...int) *basis.Basis {
	t.Helper()
	if cuts == nil {
		return basis.None(8, 8)
	}
	b, err := basis.DCTBands(8, 8, cuts...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// isotropic is a log-linear schedule.
func isotropic(t testing.TB, T, g0 float64) *schedule.Schedule {
	t.Helper()
	p, err := schedule.NewPath([]float64{0, T}, []float64{g0, T})
	if err != nil {
		t.Fatal(err)
	}
	return schedule.Isotropic(p)
}

// slanted is a schedule of J subspaces whose paths differ.
func slanted(t testing.TB, j int, T, g0 float64) *schedule.Schedule {
	t.Helper()
	var paths []*schedule.Path
	for k := range j {
		middle := math.Pow(T, 0.5+0.1*float64(k)) * math.Pow(g0, 0.5-0.1*float64(k))
		p, err := schedule.NewPath([]float64{0, T / 2, T}, []float64{g0, middle, T})
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, p)
	}
	fam := schedule.Family{Basis: "dct"}
	if j == 1 {
		fam.Basis = "none"
	}
	s, err := schedule.New(fam, nil, [][]*schedule.Path{paths})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func plan(t testing.TB, set solver.Settings, s *schedule.Schedule) *solver.Plan {
	t.Helper()
	p, err := solver.New(set, s, 0)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func bench(t testing.TB, s *Spectrum, b *basis.Basis, p *solver.Plan) *Report {
	t.Helper()
	r, err := s.Bench(b, p)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// familyOf is that of schedules on a split of 8×8 planes.
func familyOf(b *basis.Basis) schedule.Family {
	fam := schedule.Family{Basis: b.Kind()}
	if b.J() > 1 {
		fam.K = b.K()
	}
	return fam
}

func chosen(t testing.TB, s *Spectrum, b *basis.Basis, set Settings) *Nodes {
	t.Helper()
	return traded(t, s, b, set, networkError, tieShare)
}

func traded(t testing.TB, s *Spectrum, b *basis.Basis, set Settings, noise, tie float64) *Nodes {
	t.Helper()
	set.Family = familyOf(b)
	n, err := optimize(t.Context(), s, b, set, noise, tie)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tolerance*max(1e-300, math.Abs(want))) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}
