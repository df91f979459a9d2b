package modelbench

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/unet"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

// small is a bench of a small network, on the backend that has nothing to compile.
func small(t *testing.T) *Bench {
	t.Helper()
	cfg, err := unet.ParseConfig([]byte(`{"model_type":"SongUNet","img_resolution":4,"img_channels":1,"label_dim":2,
		"model_channels":8,"channel_mult":[1],"num_blocks":1,"attn_resolutions":[],"dropout":0}`))
	if err != nil {
		t.Fatal(err)
	}
	m, err := Random(cfg, 1)
	if err != nil {
		t.Fatal(err)
	}
	dev, err := device.Open(device.Config{Plugin: "go"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := Open(dev, m, 4, kernels.Float32)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.Close()
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// TestDrive: orders are answered in turn, and what is saved belongs together: ⟨∇_x⟨F, w⟩, z⟩
// is the derivative of ⟨F, w⟩ along z whichever program computes it, and the service's
// images are those of the sampler.
func TestDrive(t *testing.T) {
	b := small(t)
	file := filepath.Join(t.TempDir(), "all.safetensors")
	orders := []Order{
		{Compile: "step-full"}, {Run: "step-full", Calls: 2}, {Run: "sample"}, {Peak: "forward"}, {Save: file}, {Matmul: true}, {Run: "backward"}, {},
	}
	var in, out bytes.Buffer
	for _, o := range orders {
		if err := json.NewEncoder(&in).Encode(o); err != nil {
			t.Fatal(err)
		}
	}
	in.WriteString("run forward\n")
	if err := Drive(t.Context(), b, &in, &out); err != nil {
		t.Fatal(err)
	}
	var hello Hello
	answers := json.NewDecoder(strings.NewReader(out.String()))
	answers.DisallowUnknownFields() // as an error would be
	next := func(into any) {
		t.Helper()
		if err := answers.Decode(into); err != nil {
			t.Fatalf("%v: %s", err, out.String())
		}
	}
	next(&hello)
	if hello.Batch != 4 || hello.Parameters != b.net.ParamCount() || !slices.Equal(hello.Programs, Programs()) {
		t.Errorf("%+v", hello)
	}
	var compiled Compiled
	next(&compiled)
	if compiled.Program != "step-full" || !(compiled.Seconds > 0) {
		t.Errorf("%+v", compiled)
	}
	for _, want := range []Timing{{Program: "step-full", Calls: 2}, {Program: "sample", Calls: 1}} {
		var got Timing
		next(&got)
		if got.Program != want.Program || got.Calls != want.Calls || !(got.Wall > 0) || got.CPU < 0 {
			t.Errorf("%+v", got)
		}
	}
	var peak Peak
	next(&peak)
	if peak.Program != "forward" || peak.Peak < 0 {
		t.Errorf("%+v", peak)
	}
	var none struct{}
	next(&none)
	var rate Rate
	if next(&rate); !(rate.Matmul > 0) {
		t.Errorf("%+v", rate)
	}
	for _, want := range []string{"no program", "says compile, run", "not understood"} {
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
	saved, err := safetensors.ReadFile(file)
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
	for i, v := range values("output/sample") {
		if s := values("output/sample-flight")[i]; v != s {
			t.Fatalf("pixel %d is %v, the service's %v", i, v, s)
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
	r, err := Measure(t.Context(), small(t), []string{"forward", "vjp"}, 3, func(done, total int) {
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
	for _, b := range Builtins {
		got, err := BuiltinNamed(b.Name)
		if err != nil || got != b {
			t.Errorf("%+v, %v", got, err)
		}
		if _, err := unet.ParseConfig([]byte(b.Config)); err != nil {
			t.Errorf("%s: %v", b.Name, err)
		}
	}
	if _, err := BuiltinNamed("64x64"); err == nil || !strings.Contains(err.Error(), "8x8") {
		t.Errorf("%v", err)
	}
}
