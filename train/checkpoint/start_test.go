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
		if err := e.Add(i%2, x); err != nil {
			t.Fatal(err)
		}
	}
	s, err := e.Start()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// components returns a start of leading components, as earlier versions made them.
func components(t *testing.T) *start.Start {
	t.Helper()
	law := &start.Law{
		H: 2, W: 3, C: 2, Images: 20, Mean: make([]float64, 12), Variance: []float64{2, 1}, Vectors: make([]float64, 24),
		Rest: 0.5,
	}
	law.Vectors[0], law.Vectors[12+3] = 1, 1
	s, err := start.New(start.Settings{Covariance: "pca", Rank: 2}, map[int]*start.Law{start.Shared: law})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A start comes back as it was, those of earlier versions too, and its bytes and its hash depend on it alone.
func TestStartRoundTrip(t *testing.T) {
	law := &start.Law{H: 2, W: 3, C: 2, Mean: make([]float64, 12), Variance: slices.Repeat([]float64{2}, 12)}
	bands, err := start.New(start.Settings{Covariance: "bands", Cuts: []int{1, 2}}, map[int]*start.Law{start.Shared: law})
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*start.Start{
		"of all": startOf(t, false), "of classes": startOf(t, true), "components": components(t), "bands": bands,
	} {
		file, err := StartFile.Encode(s)
		if err != nil {
			t.Fatal(err)
		}
		back, err := StartFile.Decode(file)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(back, s) {
			t.Errorf("%s: %+v came back as %+v", name, s, back)
		}
		again, err := StartFile.Encode(back)
		if err != nil || !bytes.Equal(again, file) {
			t.Errorf("%s: another file, %v", name, err)
		}
		if hash, err := StartFile.Hash(s); err != nil || hash != hashOf(file) {
			t.Errorf("%s: hash %s, %v", name, hash, err)
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

// What is no start is refused by name.
func TestDecodeStartRefuses(t *testing.T) {
	good, err := StartFile.Encode(components(t))
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
