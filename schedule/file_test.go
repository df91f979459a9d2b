package schedule

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func encode(t *testing.T, s *Schedule) string {
	t.Helper()
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// What is written is read back bit for bit.
func TestFileRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	theta, err := FromTheta(Family{Basis: "none"}, nil, [][]Theta{{randomTheta(rng, 31, 3)}}, 6400, 1e-9)
	if err != nil {
		t.Fatal(err)
	}
	odd := Isotropic(path(t, []float64{0, math.Nextafter(0.1, 1), math.Pi * 1e5},
		[]float64{5e-324, math.Nextafter(0.3, 1), math.MaxFloat64}))
	measured, err := anisotropic(t).WithEnergy([][]*Density{{
		density(t, gaussianDensity(0.25, 1, 5, 1e-3, 10)), density(t, gaussianDensity(0.04, 1, 7, 3e-3, 10)),
	}})
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*Schedule{
		"parameters": theta, "knots": anisotropic(t), "odd numbers": odd, "per class": perClass(t), "energy": measured,
		"provenance": theta.WithProvenance(told()),
	} {
		back, err := Decode(strings.NewReader(encode(t, s)))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if !reflect.DeepEqual(back, s) {
			t.Errorf("%s: comes back different", name)
		}
		if (back.Theta() == nil) != (s.Theta() == nil) || (back.Energy() == nil) != (s.Energy() == nil) {
			t.Errorf("%s: parameters or densities are lost", name)
		}
	}
}

// told is a provenance with every field.
func told() Provenance {
	seed := uint64(math.MaxUint64)
	return Provenance{
		Kind: "learned", Dataset: &Source{
			"digits",
			"ab12",
		}, Model: &Source{Name: "net"}, Stage: "isotropic", Steps: 200, Kimg: 12.8, Seed: &seed,
		EnergyBefore: &Estimate{40.5, 0.5}, EnergyAfter: &Estimate{14.25, 0.25},
		Moved:   &Movement{LogG: 0.5, Sigma: 2, RatioBefore: 1, RatioAfter: 1.25, RatioSigma: 3},
		Program: "anisoflight 1.0", Created: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
}

// Where a schedule came from is written beside it, survives WithEnergy, and is the caller's own copy.
func TestProvenance(t *testing.T) {
	s := anisotropic(t)
	if s.Provenance() != nil {
		t.Error("a new schedule has a provenance")
	}
	s = s.WithProvenance(told())
	s.Provenance().Kind = "changed"
	got := encode(t, s)
	want := `"provenance":{"kind":"learned","dataset":{"name":"digits","hash":"ab12"},"model":{"name":"net"},` +
		`"stage":"isotropic",` +
		`"steps":200,"kimg":12.8,"seed":18446744073709551615,"energy_before":{"value":40.5,"stderr":0.5},` +
		`"energy_after":{"value":14.25,"stderr":0.25},` +
		`"moved":{"log_g":0.5,"sigma":2,"ratio_before":1,"ratio_after":1.25,"ratio_sigma":3},` +
		`"program":"anisoflight 1.0","created":"2026-01-02T03:04:05Z"}}`
	if !strings.HasSuffix(got, want) {
		t.Errorf("\n got %s\nwant …%s", got, want)
	}
	if s.Provenance().Kind != "learned" {
		t.Error("the schedule's own provenance was changed from outside")
	}
}

// The format, which other programs read: a change of these lines needs a new version.
func TestFileFormat(t *testing.T) {
	theta, err := FromTheta(Family{PerClass: true, Basis: "dct", K: 16}, []int{0, 2},
		[][]Theta{{{0.5, -1}, {1, 2}}, {{0, 0}, {3, 4}}}, 6400, 1e-9)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"format":"anisoflight-schedule","version":1,"family":{"per_class":true,"basis":"dct","k":16},"labels":[0,` +
		`2],` +
		`"T":6400,"g0":1e-9,"theta":[[[0.5,-1],[1,2]],[[0,0],[3,4]]]}`
	if got := encode(t, theta); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	table, err := Isotropic(path(t, []float64{0, 1.5}, []float64{0.1, 2})).
		WithEnergy([][]*Density{{density(t, []Sample{{1, 2, 0.1}, {0.5, 3, 0}})}})
	if err != nil {
		t.Fatal(err)
	}
	want = `{"format":"anisoflight-schedule","version":1,"family":{"per_class":false,"basis":"none"},` +
		`"paths":[[{"t":[0,1.5],"g":[0.1,2]}]],"energy":[[{"sigma":[0.5,1],"f":[3,2],"stderr":[0,0.1]}]]}`
	if got := encode(t, table); got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

// Nested bands are written with their cuts.
func TestFamilyOfBands(t *testing.T) {
	th := Theta{0.5, -1}
	fam := Family{Basis: "dct", Cuts: []int{2, 4}}
	s, err := FromTheta(fam, nil, [][]Theta{{th, th, th}}, 100, 1e-4)
	if err != nil {
		t.Fatal(err)
	}
	text := encode(t, s)
	if !strings.Contains(text, `"family":{"per_class":false,"basis":"dct","cuts":[2,4]}`) {
		t.Error(text)
	}
	back, err := Decode(strings.NewReader(text))
	if err != nil || !reflect.DeepEqual(back.Family(), fam) || back.J() != 3 {
		t.Errorf("%+v, %v", back.Family(), err)
	}
	for _, q := range []struct {
		fam  Family
		says string
	}{
		{Family{Basis: "haar", Cuts: []int{2, 4}}, "must be left out for basis haar"},
		{Family{Basis: "dct", K: 4, Cuts: []int{2, 4}}, "got 4 and [2 4]"},
		{Family{Basis: "dct", Cuts: []int{2}}, "which make 2"},
		{Family{Basis: "dct", Cuts: []int{4, 4}}, "[4 4]"},
		{Family{Basis: "dct", Cuts: []int{0, 4}}, "[0 4]"},
	} {
		if _, err := FromTheta(q.fam, nil, [][]Theta{{th, th, th}}, 100, 1e-4); err == nil ||
			!strings.Contains(err.Error(), q.says) {
			t.Errorf("%+v: %v, want %q", q.fam, err, q.says)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	good := encode(t, anisotropic(t))
	with := func(old, replacement string) string {
		t.Helper()
		if !strings.Contains(good, old) {
			t.Fatalf("%q is not in %s", old, good)
		}
		return strings.Replace(good, old, replacement, 1)
	}
	if _, err := Decode(strings.NewReader(good + " \n")); err != nil {
		t.Errorf("trailing white space: %v", err)
	}
	for name, q := range map[string][2]string{
		"nothing":         {"", "not a schedule file"},
		"no JSON":         {"schedule", "not a schedule file"},
		"cut off":         {good[:len(good)-2], "not a schedule file"},
		"two values":      {good + "{}", "more than one"},
		"trailing text":   {good + "x", "more than one"},
		"unknown field":   {with(`"version"`, `"colour":1,"version"`), "colour"},
		"wrong type":      {with(`"version":1`, `"version":"2"`), "version"},
		"another format":  {with("anisoflight-schedule", "other"), "format"},
		"a later version": {with(`"version":1`, `"version":2`), "version must be 1, got 2"},
		"no paths": {
			`{"format":"anisoflight-schedule","version":1,"family":{"per_class":false,"basis":"none"}}`,
			"either theta or paths",
		},
		"both":           {with(`"paths"`, `"theta":[[[1]]],"paths"`), "either theta or paths"},
		"T with paths":   {with(`"paths"`, `"T":5,"paths"`), "their own ends"},
		"a falling path": {with("0.001", "2"), "strictly increasing"},
		"an empty row": {`{"format":"anisoflight-schedule","version":1,"family":{"per_class":false,"basis":"none"},` +
			`"paths":[[]]}`, "at least one path"},
		"theta, no ends": {`{"format":"anisoflight-schedule","version":1,"family":{"per_class":false,"basis":"none"},` +
			`"theta":[[[1]]]}`, "g0"},
		"an uneven density": {
			with(`"paths"`, `"energy":[[{"sigma":[1,2],"f":[1],"stderr":[0,0]}]],"paths"`), "1 values",
		},
		"a density too few": {
			with(`"paths"`, `"energy":[[{"sigma":[1,2],"f":[1,1],"stderr":[0,0]}]],"paths"`), "got 1 in",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Decode(strings.NewReader(q[0]))
			var bad *Error
			if !errors.As(err, &bad) || !strings.Contains(bad.Msg, q[1]) {
				t.Errorf("%v; want %q", err, q[1])
			}
		})
	}
	broken := errors.New("broken disk")
	if _, err := Decode(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("a failing reader: %v", err)
	}
}

// TestMovedFrom: ln g of one path's middle knot goes from 1 to 1.5, that of the other stays. Below
// σ = 0.02 nothing counts.
func TestMovedFrom(t *testing.T) {
	thetas := func(first, second, g0 float64) *Schedule {
		still := Theta{softplusInverse(1), softplusInverse(1)}
		s, err := FromTheta(Family{Basis: "dct"}, nil,
			[][]Theta{{{softplusInverse(first), softplusInverse(second)}, still}}, math.Exp(2)*g0, g0)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	m := thetas(3, 1, 1).MovedFrom(thetas(1, 1, 1))
	want := Movement{
		LogG: 0.5, Sigma: math.Exp(0.75), RatioBefore: 1, RatioAfter: math.Exp(0.5), RatioSigma: math.Exp(0.625),
	}
	if math.Abs(m.LogG-want.LogG)+math.Abs(m.Sigma-want.Sigma)+math.Abs(m.RatioAfter-want.RatioAfter)+
		math.Abs(m.RatioSigma-want.RatioSigma) > 1e-6 || m.RatioBefore != 1 {
		t.Errorf("moved by %+v, want %+v", m, want)
	}
	if m := thetas(3, 1, 1e-5).MovedFrom(thetas(1, 1, 1e-5)); m.LogG != 0 || m.RatioAfter != 1 {
		t.Errorf("where nothing shows the paths have moved by %+v", m)
	}
}
