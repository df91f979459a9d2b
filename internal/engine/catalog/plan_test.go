package catalog

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// planJSON returns the JSON of a plan of three steps, changed.
func planJSON(tb testing.TB, change func(p map[string]any)) []byte {
	tb.Helper()
	edm, err := schedule.EDM(6400, 1e-9)
	if err != nil {
		tb.Fatal(err)
	}
	set := solver.Settings{Solver: "dpmpp2m", NFE: 3}
	p, err := solver.New(set, edm, 0)
	if err != nil {
		tb.Fatal(err)
	}
	tails, err := solver.Tails(set, edm, 0)
	if err != nil {
		tb.Fatal(err)
	}
	file := DescribePlan(p)
	file.Schedule, file.Solver, file.Family.Basis, file.PlanNumbers = "edm", "dpmpp2m", "none", Numbers(p, tails)
	text, err := json.Marshal(file)
	var fields map[string]any
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	if err == nil {
		change(fields)
		text, err = json.Marshal(fields)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return text
}

func stage(p map[string]any, k int) map[string]any { return p["stages"].([]any)[k].(map[string]any) }

// What no server wrote is refused before anything is computed, and what a later version may add is left out.
func TestPlansAreChecked(t *testing.T) {
	if _, err := DecodePlan("p", planJSON(t, func(p map[string]any) { p["of a later version"] = 1 })); err != nil {
		t.Error(err)
	}
	for says, change := range map[string]func(p map[string]any){
		"format and version":     func(p map[string]any) { p["version"] = 2 },
		"begin must be left out": func(p map[string]any) { p["begin"] = 0 },
		"info must be":           func(p map[string]any) { p["info"] = "x" },
		"provenance must be":     func(p map[string]any) { p["provenance"] = []int{1} },
		"predicts must be":       func(p map[string]any) { p["predicts"] = "noise" },
		"history lie in":         func(p map[string]any) { p["history"] = 1 << 20 },
		"nfe and steps must":     func(p map[string]any) { p["nfe"] = 0 },
		"3 stages":               func(p map[string]any) { p["stages"] = p["stages"].([]any)[:2] },
		"t must fall":            func(p map[string]any) { p["t"] = []float64{3, 2, 2, 0} },
		"init must be positive":  func(p map[string]any) { p["init"] = []float64{0} },
		"levels to begin at":     func(p map[string]any) { p["init"] = []float64{} },
		"g must be positive":     func(p map[string]any) { stage(p, 1)["g"] = []float64{-1} },
		"of 1 subspaces":         func(p map[string]any) { stage(p, 1)["g"] = []float64{1, 1} },
		"noise must be":          func(p map[string]any) { stage(p, 1)["noise"] = []float64{-1} },
		"steps 0 … 2 in order":   func(p map[string]any) { stage(p, 1)["step"] = 2 },
		"must end 3 steps":       func(p map[string]any) { stage(p, 2)["step"] = -1 },
		"of 1 parts":             func(p map[string]any) { stage(p, 0)["alpha"] = []float64{1, 2} },
		"evaluations made":       func(p map[string]any) { stage(p, 0)["beta"] = [][]float64{{1, 1}} },
		"beta must have":         func(p map[string]any) { stage(p, 2)["beta"] = [][]float64{{1, 1, 1}} },
		"tails must be of":       func(p map[string]any) { p["tails"] = []any{} },
		"start and law":          func(p map[string]any) { p["start"] = map[string]any{"hash": "x"} },
		"start.safetensors":      func(p map[string]any) { p["start"], p["law"] = map[string]any{"hash": "x"}, "AAAA" },
		"basis.safetensors":      func(p map[string]any) { p["vectors"] = "AAAA" },
		"cannot be read":         func(p map[string]any) { p["law"] = "not base64" },
		"labels must":            func(p map[string]any) { p["classes"] = []any{map[string]any{"labels": []int{0, 0}}} },
		"coordinates must have":  func(p map[string]any) { p["coordinates"] = map[string]any{"height": 1 << 20, "width": 1} },
		"of at most 4194304":     func(p map[string]any) { p["coordinates"] = sizes(4096, 4096, 1) },
		"axes must be 4":         func(p map[string]any) { p["coordinates"] = sizes(1, 1, 2, 1, 0) },
		"axes must be orthonormal": func(p map[string]any) {
			p["coordinates"] = sizes(1, 1, 2, 1, 0, 1, 0)
		},
	} {
		if says == "tails must be of" {
			change = func(p map[string]any) { p["tails"] = []any{[]any{}} }
		}
		_, err := DecodePlan("p", planJSON(t, change))
		if err == nil || api.ErrorOf(err).Code != api.BadSchedule || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

func sizes(h, w, c int, axes ...float64) map[string]any {
	out := map[string]any{"height": h, "width": w, "channels": c}
	if axes != nil {
		out["axes"] = axes
	}
	return out
}

// A plan of several classes has one for each of its labels and none for others; one that does not differ by class is
// for all.
func TestPlansByLabel(t *testing.T) {
	one, err := DecodePlan("one", planJSON(t, func(map[string]any) {}))
	if err != nil {
		t.Fatal(err)
	}
	if _, i, err := one.For(7); err != nil || i != 0 {
		t.Errorf("plan %d, %v", i, err)
	}
	two, err := DecodePlan("two", planJSON(t, func(p map[string]any) {
		numbers := map[string]any{}
		for _, name := range []string{"t", "init", "stages", "tails"} {
			numbers[name] = p[name]
			delete(p, name)
		}
		other := map[string]any{"labels": []int{4}}
		for name, v := range numbers {
			other[name] = v
		}
		numbers["labels"] = []int{2, 3}
		p["classes"] = []any{numbers, other}
	}))
	if err != nil {
		t.Fatal(err)
	}
	if _, i, err := two.For(4); err != nil || i != 1 || !slices.Equal(two.Labels(), []int32{2, 3, 4}) {
		t.Errorf("plan %d of the labels %v, %v", i, two.Labels(), err)
	}
	if _, _, err := two.For(0); err == nil || !strings.Contains(err.Error(), "[2 3 4]") {
		t.Errorf("%v for another label", err)
	}
}

// Whatever a request has as a plan, reading it ends with a plan that comes back, or an error of the contract.
func FuzzPlan(f *testing.F) {
	f.Add(planJSON(f, func(map[string]any) {}))
	f.Add(planJSON(f, func(p map[string]any) { p["coordinates"] = sizes(2, 2, 1) }))
	f.Add([]byte(`{"classes":[{"labels":[1],"stages":[]}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := DecodePlan("p", text)
		if err != nil {
			if api.ErrorOf(err).Code != api.BadSchedule {
				t.Errorf("%v", err)
			}
			return
		}
		whole, err := p.Whole()
		if err != nil {
			t.Fatal(err)
		}
		again, err := json.Marshal(whole)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := DecodePlan("p", again); err != nil {
			t.Errorf("it does not come back: %v", err)
		}
	})
}
