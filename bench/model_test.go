package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/unet"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

// smallest and little are networks that compile fast, the latter of images that the service's batches fill.
const (
	smallest = `{"model_type":"SongUNet","img_resolution":4,"img_channels":1,"label_dim":2,
		"model_channels":8,"channel_mult":[1],"num_blocks":1,"attn_resolutions":[],"dropout":0}`
	little = `{"model_type":"SongUNet","img_resolution":8,"img_channels":1,"label_dim":3,
		"model_channels":8,"channel_mult":[1],"num_blocks":1,"attn_resolutions":[],"dropout":0}`
)

func random(t *testing.T, config string) *checkpoint.Model {
	t.Helper()
	m, err := randomModel(config, 1)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// small is a bench of a small network, on the backend that has nothing to compile.
func small(t *testing.T) *modelBench {
	t.Helper()
	dev, err := device.Open(device.Config{Plugin: "go"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := openModel(dev, random(t, smallest), modelOptions{batch: 4, precision: kernels.Float32})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(b.close(), dev.Close()); err != nil {
			t.Error(err)
		}
	})
	return b
}

// TestDrive: orders are answered in turn, and ∇_x⟨F, w⟩ is the same in the outputs of both programs that compute it.
func TestDrive(t *testing.T) {
	b := small(t)
	file := filepath.Join(t.TempDir(), "all.safetensors")
	orders := []order{
		{Compile: "step-full"},
		{Run: "step-full", Calls: 2},
		{Run: "sample"},
		{Peak: "forward"},
		{Save: file},
		{Digest: "forward"},
		{Matmul: true},
		{Run: "backward"},
		{},
	}
	var in, out bytes.Buffer
	for _, o := range orders {
		if err := json.NewEncoder(&in).Encode(o); err != nil {
			t.Fatal(err)
		}
	}
	in.WriteString("run forward\n")
	if err := b.drive(t.Context(), &in, &out); err != nil {
		t.Fatal(err)
	}
	var first hello
	answers := json.NewDecoder(strings.NewReader(out.String()))
	answers.DisallowUnknownFields() // as an error would be
	next := func(into any) {
		t.Helper()
		if err := answers.Decode(into); err != nil {
			t.Fatalf("%v: %s", err, out.String())
		}
	}
	next(&first)
	if first.Batch != 4 || first.Parameters != b.net.ParamCount() || !slices.Equal(first.Programs, programNames()) {
		t.Errorf("%+v", first)
	}
	var ready compiled
	next(&ready)
	if ready.Program != "step-full" || !(ready.Seconds > 0) {
		t.Errorf("%+v", ready)
	}
	for _, want := range []timing{{Program: "step-full", Calls: 2}, {Program: "sample", Calls: 1}} {
		var got timing
		next(&got)
		if got.Program != want.Program || got.Calls != want.Calls || !(got.Wall > 0) || got.CPU < 0 {
			t.Errorf("%+v", got)
		}
	}
	var memory peak
	next(&memory)
	if memory.Program != "forward" || memory.Bytes < 0 {
		t.Errorf("%+v", memory)
	}
	var none struct{}
	next(&none)
	var digest digestAnswer
	if next(&digest); len(digest.Digest) != 64 {
		t.Errorf("%+v", digest)
	}
	var products matmulAnswer
	if next(&products); !(products.Matmul > 0) {
		t.Errorf("%+v", products)
	}
	for _, want := range []string{`got "backward"`, "must have compile, run", "must be JSON"} {
		var failed struct{ Error string }
		next(&failed)
		if !strings.Contains(failed.Error, want) {
			t.Errorf("%q does not contain %q", failed.Error, want)
		}
	}
	var more any
	if err := answers.Decode(&more); err != io.EOF {
		t.Errorf("one answer too many: %v, %v", more, err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	saved, err := safetensors.Decode(text)
	if err != nil {
		t.Fatal(err)
	}
	values := func(name string) []float32 {
		t.Helper()
		tensor := saved.Lookup(name)
		if tensor == nil {
			t.Fatalf("no %s", name)
		}
		v, err := tensor.Float32s()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	for i, v := range values("output/vjp") {
		if a := values("output/double/a")[i]; math.Abs(float64(v-a)) > 1e-5 {
			t.Fatalf("a[%d] is %v and %v", i, v, a)
		}
	}
	for _, p := range b.net.Params() {
		if got := saved.Lookup("output/parameters/" + p.Name); got == nil || !slices.Equal(got.Shape, p.Shape) {
			t.Errorf("%s: %v", p.Name, got)
		}
	}
	for _, name := range []string{"score/residual", "explicit/explicit_x", "full/implicit1", "full/implicit3"} {
		if got := saved.Lookup("output/step-" + name); got == nil || !slices.Equal(got.Shape, []int{4}) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestMeasure: every program asked for has a row.
func TestMeasure(t *testing.T) {
	told := 0
	r, err := small(t).measure(t.Context(), []string{"forward", "vjp"}, 3, func(done, total int) {
		if told++; done != told || total != 8 {
			t.Errorf("progress %d of %d", done, total)
		}
	})
	if err != nil || len(r.Rows) != 2 || told != 8 {
		t.Fatalf("%+v, %v; told %d times", r, err, told)
	}
	for i, name := range []string{"forward", "vjp"} {
		row := r.Rows[i]
		if row.Program != name || !(0 < row.Wall.Low && row.Wall.Low <= row.Wall.Median && row.Wall.Median <= row.Wall.High) {
			t.Errorf("%+v", row)
		}
	}
}

func TestBuiltins(t *testing.T) {
	for _, b := range builtins {
		got, err := builtinNamed(b.name)
		if err != nil || got != b {
			t.Errorf("%+v, %v", got, err)
		}
		if _, err := unet.Parse([]byte(b.config)); err != nil {
			t.Errorf("%s: %v", b.name, err)
		}
	}
	if got, err := builtinNamed(smallest); err != nil || got.config != smallest || got.batch != 64 {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := builtinNamed("64x64"); err == nil || !strings.Contains(err.Error(), "8x8") {
		t.Errorf("%v", err)
	}
}
