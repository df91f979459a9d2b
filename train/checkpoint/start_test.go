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

// startOf returns the start of some images of 2×3 pixels in two channels.
func startOf(t *testing.T, set start.Settings) *start.Start {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	s, err := start.Measure(2, 3, 2, func(yield func(int, []float64) bool) {
		for i := range 20 {
			x := make([]float64, 12)
			for k := range x {
				x[k] = rng.NormFloat64() + float64(i%2)
			}
			if !yield(i%2, x) {
				return
			}
		}
	}, set)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A start comes back as it was, and its bytes and its hash depend on it alone.
func TestStartRoundTrip(t *testing.T) {
	for _, set := range []start.Settings{
		{},
		{Covariance: start.None},
		{Covariance: start.Bands, Cuts: []int{1, 2}},
		{PerClass: true},
		{Covariance: start.PCA, Rank: 3, PerClass: true, Shrinkage: 2.5},
		{Covariance: start.Full},
	} {
		s := startOf(t, set)
		file, err := StartFile.Encode(s)
		if err != nil {
			t.Fatal(err)
		}
		back, err := StartFile.Decode(file)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(back, s) {
			t.Errorf("%+v came back as %+v", s, back)
		}
		again, err := StartFile.Encode(back)
		if err != nil || !bytes.Equal(again, file) {
			t.Errorf("%s: another file, %v", set.Covariance, err)
		}
		if hash, err := StartFile.Hash(s); err != nil || hash != hashOf(file) {
			t.Errorf("%s: hash %s, %v", set.Covariance, hash, err)
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
	want := Schedule{Schedule: schedule.Isotropic(p), Start: startOf(t, start.Settings{})}
	if err := SaveSchedule(dir, want); err != nil {
		t.Fatal(err)
	}
	got, err := LoadSchedule(dir)
	if err != nil || got.T() != 4 || !reflect.DeepEqual(got.Start, want.Start) {
		t.Errorf("%+v, %v", got, err)
	}
}

// What is no start is refused by name.
func TestDecodeStartRefuses(t *testing.T) {
	good, err := StartFile.Encode(startOf(t, start.Settings{Covariance: start.PCA, Rank: 2}))
	if err != nil {
		t.Fatal(err)
	}
	for name, q := range map[string]struct {
		change func(f *safetensors.File)
		want   string
	}{
		"format":         {func(f *safetensors.File) { f.Metadata["format"] = "pt" }, "must be of format anisoflight-start"},
		"covariance":     {func(f *safetensors.File) { f.Metadata["covariance"] = "x" }, "covariance must be one of"},
		"shrinkage":      {func(f *safetensors.File) { f.Metadata["shrinkage"] = "x" }, "metadata that cannot be read"},
		"no mean":        {func(f *safetensors.File) { f.Tensors = f.Tensors[1:] }, "mean.-1"},
		"a label's name": {func(f *safetensors.File) { f.Tensors[0].Name = "mean.x" }, "is not the mean"},
		"no variance": {func(f *safetensors.File) {
			f.Tensors = slices.DeleteFunc(f.Tensors, func(t safetensors.Tensor) bool { return t.Name == "variance.-1" })
		}, `"variance.-1": is missing`},
		"negative": {func(f *safetensors.File) {
			*f.Lookup("variance.-1") = safetensors.FromFloat64s("variance.-1", []int{2}, []float64{1, -1})
		}, "variance must be finite and not negative, got -1"},
		"not orthonormal": {func(f *safetensors.File) {
			*f.Lookup("vectors.-1") = safetensors.FromFloat64s("vectors.-1", []int{2, 2, 3, 2}, make([]float64, 24))
		}, "axes must be orthonormal"},
		"a shape": {func(f *safetensors.File) { f.Lookup("rest.-1").Shape = []int{1, 1} }, "must be F64 of the shape [1]"},
		"images": {func(f *safetensors.File) {
			*f.Lookup("images.-1") = safetensors.FromInt64s("images.-1", []int{1}, []int64{-1})
		}, "must be one number that is not negative"},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := safetensors.Decode(good)
			if err != nil {
				t.Fatal(err)
			}
			q.change(f)
			file, err := encode(f)
			if err != nil {
				t.Fatal(err)
			}
			_, err = StartFile.Decode(file)
			var own *Error
			if !errors.As(err, &own) || !strings.Contains(err.Error(), q.want) {
				t.Errorf("error %v, want %q", err, q.want)
			}
		})
	}
	if _, err := StartFile.Decode([]byte("x")); err == nil {
		t.Error("a file of one byte is a start")
	}
}
