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

	"github.com/anisoflight/anisoflight/schedule"
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

// TestSidecarsComeBack: with every bit, shared or by class.
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
	if _, err := StartFile.Decode([]byte("x")); err == nil {
		t.Error("a file of one byte is a start")
	}
}
