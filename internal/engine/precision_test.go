package engine

import (
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/testing/foldertest"
	"github.com/anisoflight/anisoflight/kernels"
)

// The server's precision is that of models and runs that name none. One loaded at another is computed at that, and
// everything says which.
func TestPrecision(t *testing.T) {
	dir := foldertest.New(t)
	e := reopen(t, dir, Config{Precision: kernels.BFloat16})
	if p := act(t, e, "ServerInfo", `{}`)["precision"]; p != "bfloat16" {
		t.Errorf("ServerInfo says %v", p)
	}
	describe := func(version float64, precision string) {
		t.Helper()
		if m := act(t, e, "DescribeModel", `{"model":"tiny"}`); m["precision"] != precision || m["version"] != version {
			t.Errorf("the model is version %v at %v, want %v at %s", m["version"], m["precision"], version, precision)
		}
	}
	sample := func() []float64 {
		t.Helper()
		r := get(t, e, "Sample", `{"model":"tiny","n":2,"steps":4,"seed":3,"dtype":"float32"}`)
		var x []float64
		for _, v := range column[float32](r, "sample") {
			x = append(x, float64(v))
		}
		return x
	}
	describe(1, "bfloat16")
	rough := sample()
	if !slices.Equal(rough, sample()) {
		t.Error("the same samples twice differ")
	}
	act(t, e, "LoadModel", `{"name":"tiny","precision":"float32"}`)
	describe(2, "float32")
	for range 2 { // named or not, the same again changes nothing
		act(t, e, "LoadModel", `{"name":"tiny"}`)
		act(t, e, "LoadModel", `{"name":"tiny","precision":"float32"}`)
	}
	describe(2, "float32")
	exact := sample()
	if d := floats.Distance(rough, exact, 2) / floats.Norm(exact, 2); !(d > 1e-5 && d < 0.05) {
		t.Errorf("samples in bfloat16 are %.2g from float32's, want some difference, at most 0.05", d)
	}

	newRun(t, e, "default", "")
	newRun(t, e, "own", `,"precision":"float32"`)
	for run, want := range map[string]string{"default": "bfloat16", "own": "float32"} {
		cfg := act(t, e, "GetRun", `{"run":"`+run+`"}`)["config"].(map[string]any)
		if cfg["precision"] != want {
			t.Errorf("the run %q has precision %v, want %s", run, cfg["precision"], want)
		}
	}
	if r := get(t, e, "TrainStep", `{"run":"default"}`); !(column[float64](r, "grad_norm")[0] > 0) {
		t.Error("a step in bfloat16 has no gradient")
	}

	for name, body := range map[string]string{
		"LoadModel": `{"name":"tiny","precision":"float16"}`,
		"CreateRun": `{"name":"x","stage":"isotropic","dataset":"noise","model":"tiny","precision":"half"}`,
	} {
		refuse(t, e, name, body, api.BadRequest)
	}
}
