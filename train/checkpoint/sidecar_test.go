package checkpoint

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/local"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/start"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

// startOf returns the start of images of 2×3 pixels in two channels.
func startOf(t *testing.T, perClass bool) *start.Start {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	e := start.NewEstimator(2, 3, 2, perClass, nil)
	for i := range 20 {
		x := make([]float64, 12)
		for k := range x {
			x[k] = rng.NormFloat64() + float64(i%2)
		}
		if err := e.Add([]int32{int32(i % 2)}, x); err != nil {
			t.Fatal(err)
		}
	}
	s, err := e.Start()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// someStatistics are those of images of 1×2 pixels in two channels, each frequency a band.
func someStatistics(t *testing.T, labels []int) *local.Statistics {
	t.Helper()
	rows := make([]local.Row, max(len(labels), 1))
	for r := range rows {
		v := float64(r + 1)
		rows[r] = local.Row{Variance: []float64{v, 0.1, 0, 2}, Gain: [][]float64{{0.9, v / 10, 0, 1.2}, {0.1, 0.2, 0.3, 0.4}}}
	}
	rows[0].Axes = []float64{0, 1, -1, 0, 0.6, 0.8, -0.8, 0.6}
	s, err := local.New(basis.Bands{H: 1, W: 2, C: 2, N: 2}, labels, []float64{0.1, 3}, rows)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// bandStatistics has axes and gains that differ by band.
func bandStatistics(t *testing.T, bands basis.Bands) *local.Statistics {
	t.Helper()
	row := local.Row{Gain: make([][]float64, 2)}
	for part := range bands.Parts() {
		axis := make([]float64, bands.C)
		axis[(part+part/bands.C)%bands.C] = 1
		row.Axes = append(row.Axes, axis...)
		row.Variance = append(row.Variance, float64(part))
		for p := range row.Gain {
			row.Gain[p] = append(row.Gain[p], 1/float64(1+p+part))
		}
	}
	s, err := local.New(bands, nil, []float64{0.1, 3}, []local.Row{row})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func someFitted() *solver.Fitted {
	return &solver.Fitted{
		Sigma: []float64{80, 3, 0.002},
		Weights: solver.Weights{
			Alpha: [][]float64{{1, 2}, {0.1, 0.3}},
			Beta:  [][][]float64{{{0.5}, {0.25}}, {{1, 0, -0.5}, {0.125, 0, 2}}},
		},
		Tails: []solver.Weights{{Alpha: [][]float64{{0.2, 0.4}}, Beta: [][][]float64{{{0.75}, {1.5}}}}},
	}
}

// comesBack returns what is read of a value's file, which must have the same bytes when it is written again.
func comesBack[T any](t *testing.T, kind Sidecar[T], v *T) *T {
	t.Helper()
	file, err := kind.Encode(v)
	if err != nil {
		t.Fatal(err)
	}
	back, err := kind.Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := kind.Encode(back); err != nil || !bytes.Equal(again, file) {
		t.Errorf("%s: another file, %v", kind.Name(), err)
	}
	return back
}

// TestSidecarsComeBack: with every bit, shared or by class; rows of coefficients are filled up with zeros.
func TestSidecarsComeBack(t *testing.T) {
	law := &start.Law{H: 2, W: 3, C: 2, Mean: make([]float64, 12), Variance: slices.Repeat([]float64{2}, 12)}
	level, err := start.New(start.Settings{Covariance: start.DCT}, map[int]*start.Law{start.Shared: law})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*start.Start{startOf(t, false), startOf(t, true), level} {
		if back := comesBack(t, StartFile, s); !reflect.DeepEqual(back, s) {
			t.Errorf("%+v came back as %+v", s, back)
		}
	}
	for _, labels := range [][]int{nil, {0, 3}} {
		s := someStatistics(t, labels)
		back := comesBack(t, StatisticsFile, s)
		diff := cmp.Diff(labels, back.Labels()) + cmp.Diff(s.Sigma(), back.Sigma())
		for r := range s.Rows() {
			diff += cmp.Diff(s.At(r), back.At(r))
		}
		if diff != "" {
			t.Error(diff)
		}
	}
	for _, bands := range []basis.Bands{{H: 4, W: 6, C: 2, N: 5}, {H: 512, W: 512, C: 3, N: 64}} {
		s := bandStatistics(t, bands)
		if back := comesBack(t, StatisticsFile, s); !reflect.DeepEqual(back, s) {
			t.Errorf("statistics in %+v came back in %+v", bands, back.Bands())
		}
	}
	fitted := someFitted()
	back := comesBack(t, FittedFile, fitted)
	fitted.Beta[0] = [][]float64{{0.5, 0, 0}, {0.25, 0, 0}}
	if diff := cmp.Diff(fitted, back); diff != "" {
		t.Error(diff)
	}
}

// A schedule's folder keeps the start beside the schedule.
func TestScheduleFolderWithStart(t *testing.T) {
	p, err := schedule.NewPath([]float64{0, 4}, []float64{1e-6, 4})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "s")
	want := Schedule{Schedule: schedule.Isotropic(p), Start: startOf(t, false)}
	if err := SaveSchedule(dir, want); err != nil {
		t.Fatal(err)
	}
	got, err := LoadSchedule(dir)
	if err != nil || got.T() != 4 || !reflect.DeepEqual(got.Start, want.Start) {
		t.Errorf("%+v, %v", got, err)
	}
}

// refuses checks that a changed file of a value is an *Error that says what is wrong.
func refuses[T any](t *testing.T, kind Sidecar[T], v *T, name string, change func(f *safetensors.File), want string) {
	t.Helper()
	file, err := kind.Encode(v)
	if err != nil {
		t.Fatal(err)
	}
	f, err := safetensors.Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	change(f)
	if file, err = encode(f); err != nil {
		t.Fatal(err)
	}
	_, err = kind.Decode(file)
	var wrong *Error
	if !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) {
		t.Errorf("%s, %s: error %v, want %q", kind.Name(), name, err, want)
	}
}

// TestBadSidecars: what cannot be used is refused by name.
func TestBadSidecars(t *testing.T) {
	without := func(name string) func(f *safetensors.File) {
		return func(f *safetensors.File) {
			f.Tensors = slices.DeleteFunc(f.Tensors, func(t safetensors.Tensor) bool { return t.Name == name })
		}
	}
	meta := func(key, value string) func(f *safetensors.File) {
		return func(f *safetensors.File) { f.Metadata[key] = value }
	}
	replaced := func(t safetensors.Tensor) func(f *safetensors.File) {
		return func(f *safetensors.File) { *f.Lookup(t.Name) = t }
	}
	shaped := func(name string, shape ...int) func(f *safetensors.File) {
		return func(f *safetensors.File) { f.Lookup(name).Shape = shape }
	}
	law := startOf(t, false)
	for name, c := range map[string]struct {
		change func(f *safetensors.File)
		want   string
	}{
		"format":         {meta("format", "pt"), "must be of format anisoflight-start"},
		"covariance":     {meta("covariance", "x"), "covariance must be dct"},
		"shrinkage":      {meta("shrinkage", "x"), "metadata that cannot be read"},
		"no mean":        {without("mean.-1"), "mean.-1"},
		"a label's name": {func(f *safetensors.File) { f.Lookup("mean.-1").Name = "mean.x" }, "is not the mean"},
		"no variance":    {without("variance.-1"), `"variance.-1": is missing`},
		"negative": {
			replaced(safetensors.FromFloat64s("variance.-1", []int{2, 3, 2}, slices.Repeat([]float64{1, -1}, 6))),
			"variance must be finite and not negative, got -1",
		},
		"not orthonormal": {
			replaced(safetensors.FromFloat64s("axes.-1", []int{2, 3, 2, 2}, make([]float64, 24))),
			"axes must be orthonormal",
		},
		"a shape": {shaped("variance.-1", 12), "must be F64 of the shape [2 3 2]"},
		"images": {
			replaced(safetensors.FromInt64s("images.-1", []int{1}, []int64{-1})), "must be one number that is not negative",
		},
	} {
		refuses(t, StartFile, law, name, c.change, c.want)
	}
	statistics := someStatistics(t, nil)
	refuses(t, StatisticsFile, statistics, "format", meta("format", "other"), "format")
	refuses(t, StatisticsFile, statistics, "no gain", without("gain.-1"), "gain.-1")
	refuses(t, StatisticsFile, statistics, "no rows", without("variance.-1"), "sigma")
	refuses(t, StatisticsFile, statistics, "shape", shaped("axes.-1", 2, 4, 1), "axes.-1")
	refuses(t, StatisticsFile, statistics, "levels", shaped("sigma", 2, 1), "sigma")
	inBands := bandStatistics(t, basis.Bands{H: 4, W: 6, C: 2, N: 5})
	for key, value := range map[string]string{"bands": "0", "height": "1000000", "width": "x"} {
		refuses(t, StatisticsFile, inBands, key, meta(key, value), "metadata that cannot be read")
	}
	refuses(t, StatisticsFile, inBands, "other bands", meta("bands", "9"), "axes must be")
	withoutBands := func(f *safetensors.File) { delete(f.Metadata, "bands") }
	refuses(t, StatisticsFile, inBands, "no bands", withoutBands, "metadata that cannot be read")
	for _, name := range []string{"sigma", "alpha", "beta", "alpha.1"} {
		refuses(t, FittedFile, someFitted(), "without", without(name), name)
	}
	long := someFitted()
	long.Tails[0] = long.Weights
	refuses(t, FittedFile, long, "a long tail", func(*safetensors.File) {}, "must have at most 1 steps, in 2 parts")
	if _, err := StartFile.Decode([]byte("x")); err == nil {
		t.Error("a file of one byte is a start")
	}
}
