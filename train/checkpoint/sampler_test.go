package checkpoint

import (
	"bytes"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

// edmFor returns EDM's schedule as a file of 0.1 has it, with a sampler.
func edmFor(t *testing.T, sampler string) *schedule.Schedule {
	t.Helper()
	s, err := schedule.Decode(strings.NewReader(`{"format":"anisoflight-schedule","version":1,
		"family":{"per_class":false,"basis":"none"},"paths":[[{"t":[0,1,2],"g":[4e-6,9,6400]}]],"sampler":` + sampler + `}`))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// of01 writes the folder of a schedule of 0.1 with files of statistics and coefficients of images of 1×2 pixels.
func of01(t *testing.T, change func(files map[string]*safetensors.File)) string {
	t.Helper()
	n := func(name string, shape []int, values ...float64) safetensors.Tensor {
		return safetensors.FromFloat64s(name, shape, values)
	}
	files := map[string]*safetensors.File{
		"statistics": {
			Metadata: map[string]string{"bands": "2", "height": "1", "width": "2"},
			Tensors: []safetensors.Tensor{
				n("sigma", []int{2}, 0.1, 3), n("gain.-1", []int{2, 2, 1}, 0.9, 0.2, 0.1, 0.3),
				n("variance.-1", []int{2, 1}, 1, 0.1), n("axes.-1", []int{2, 1, 1}, 1, -1),
			},
		},
		"fitted": {Tensors: []safetensors.Tensor{
			n("sigma", []int{3}, 80, 3, 0.002), n("alpha", []int{2, 2}, 1, 2, 0.1, 0.3),
			n("beta", []int{2, 2, 3}, 0.5, 0, 0, 0.25, 0, 0, 1, 0, -0.5, 0.125, 0, 2),
			n("alpha.1", []int{1, 2}, 0.2, 0.4), n("beta.1", []int{1, 2, 1}, 0.75, 1.5),
		}},
	}
	change(files)
	out := map[string][]byte{}
	for name, f := range files {
		if f.Metadata == nil {
			f.Metadata = map[string]string{}
		}
		f.Metadata["format"], f.Metadata["version"] = "anisoflight-"+name, "1"
		var text bytes.Buffer
		if err := safetensors.Write(&text, f); err != nil {
			t.Fatal(err)
		}
		out[name+".safetensors"] = text.Bytes()
	}
	dir := filepath.Join(t.TempDir(), "old.schedule")
	if err := writeFolder(dir, out, false); err != nil {
		t.Fatal(err)
	}
	return dir
}

func unchanged(map[string]*safetensors.File) {}

// The coefficients that 0.1 fitted are a plan with its tails.
func TestFittedSamplersOf01(t *testing.T) {
	got, err := LoadSamplers(of01(t, unchanged), edmFor(t, `{"solver":"fitted","nfe":2}`))
	if err != nil || len(got) != 1 {
		t.Fatalf("%d, %v", len(got), err)
	}
	p := got[0]
	if math.Abs(p.Init[0]-80) > 1e-9 || math.Abs(p.Stages[1].G[0]-9) > 1e-9 || !p.States || !p.Data ||
		p.Coordinates.Parts() != 2 || p.Coordinates.Axes[0][1] != -1 {
		t.Errorf("%+v in %+v", p.Plan, p.Coordinates)
	}
	want := []solver.Stage{
		{Alpha: []float64{1, 2}, Beta: [][]float64{{0.5, 0, 0}, {0.25, 0, 0}}},
		{Alpha: []float64{0.1, 0.3}, Beta: [][]float64{{1, 0, -0.5}, {0.125, 0, 2}}},
	}
	for k, st := range want {
		if !p.Stages[k].Combines(st) {
			t.Errorf("stage %d: %+v, want %+v", k, p.Stages[k], st)
		}
	}
	tails := [][]solver.Stage{{{Alpha: []float64{0.2, 0.4}, Beta: [][]float64{{0.75}, {1.5}}}}}
	if diff := cmp.Diff(tails, p.Tails); diff != "" {
		t.Error(diff)
	}
}

// Other samplers are the plans of their solvers along the schedule.
func TestOtherSamplersOf01(t *testing.T) {
	s := edmFor(t, `{"solver":"local","nfe":4}`)
	got, err := LoadSamplers(of01(t, unchanged), s)
	if err != nil || got[0].NFE != 4 || got[0].Coordinates.Parts() != 2 || len(got[0].Tails) != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	if g := got[0].Stages[2].G[0]; math.Abs(g-9) > 1e-9 {
		t.Errorf("the third of 4 steps begins at g = %v, want the knot's 9", g)
	}
	s = edmFor(t, `{"solver":"dpmpp2m","nfe":4}`)
	if got, err = LoadSamplers(of01(t, unchanged), s); err != nil {
		t.Fatal(err)
	}
	want, err := solver.New(solver.Settings{Solver: "dpmpp2m", NFE: 4}, s, 0)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got[0].Plan); diff != "" {
		t.Error(diff)
	}
}

// Files of 0.1 that cannot be used are named.
func TestSamplersOf01Refuse(t *testing.T) {
	for want, change := range map[string]func(map[string]*safetensors.File){
		"statistics.safetensors": func(f map[string]*safetensors.File) { delete(f, "statistics") },
		"fitted.safetensors":     func(f map[string]*safetensors.File) { delete(f, "fitted") },
		"metadata that cannot":   func(f map[string]*safetensors.File) { f["statistics"].Metadata["bands"] = "0" },
		"beta":                   func(f map[string]*safetensors.File) { f["fitted"].Tensors = f["fitted"].Tensors[:2] },
		"gain.-1":                func(f map[string]*safetensors.File) { f["statistics"].Tensors[1].Name = "gone" },
		"at most 1 steps": func(f map[string]*safetensors.File) {
			own := f["fitted"].Tensors
			own[3], own[4] = own[1], own[2]
			own[3].Name, own[4].Name = "alpha.1", "beta.1"
		},
	} {
		if _, err := LoadSamplers(of01(t, change), edmFor(t, `{"solver":"fitted","nfe":2}`)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
