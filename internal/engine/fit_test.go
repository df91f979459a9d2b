package engine

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
)

// Coefficients are fitted to a model's trajectories, on a schedule without a start, and serve the solver "fitted".
func TestFittedSchedule(t *testing.T) {
	dir := t.TempDir()
	small := strings.Replace(tiny, `"img_resolution":8`, `"img_resolution":4`, 1)
	writeModel(t, filepath.Join(dir, "models", "tiny"), small, 1)
	e := reopen(t, dir, Config{Device: devicetest.Open(t)})
	putSmoothOf(t, e, "smooth", 96, 4)
	makeGaussian(t, e, `{"name":"path","kind":"geodesic","model":"tiny","dataset":"smooth","statistics":true}`)
	made := makeGaussian(t, e,
		`{"name":"fit","kind":"fit","model":"tiny","schedule":"path","nfe":3,"samples":16,"seed":2}`)
	if f := made.Fit; f == nil || f.NFE != 3 || f.Samples != 16 || !(f.Fitted > 0 && f.Fitted < f.Local) {
		t.Fatalf("made %+v with %+v", made, made.Fit)
	}
	sample := func(schedule, solver string) []float32 {
		return column[float32](get(t, e, "Sample",
			`{"model":"tiny","n":2,"nfe":3,"schedule":"`+schedule+`","dtype":"float32"`+solver+`}`), "sample")
	}
	fitted := sample("fit", `,"solver":"fitted"`)
	if local := sample("fit", `,"solver":"local"`); fitted[0] == local[0] {
		t.Errorf("both solvers give %g", fitted[0])
	}
	// It carries its solver: samples and plans take it where no other is asked for.
	if own := sample("fit", ""); !slices.Equal(own, fitted) {
		t.Error("the schedule's own solver is not the default")
	}
	plan, err := perform(t.Context(), e, "PlanSampler", `{"schedule":"fit","nfe":3}`, nil)
	if p, _ := plan.(api.Plan); err != nil || p.Solver != "fitted" || p.NFE != 3 {
		t.Errorf("plan of %q with %d evaluations: %v", p.Solver, p.NFE, err)
	}
	// Its files bring everything back, and an import without them is refused.
	var file bytes.Buffer
	exported, err := perform(t.Context(), e, "ExportSchedule", `{"schedule":"fit"}`, nil)
	if err := errors.Join(err, json.NewEncoder(&file).Encode(exported)); err != nil {
		t.Fatal(err)
	}
	parts := ""
	for _, name := range []string{"Statistics", "Fitted"} {
		part, err := perform(t.Context(), e, "Export"+name, `{"schedule":"fit"}`, nil)
		if err != nil {
			t.Fatal(err)
		}
		_, err = perform(t.Context(), e, "ImportSchedule", `{"name":"back","file":`+file.String()+parts+`}`, nil)
		wantCode(t, "without "+name, err, api.BadSchedule)
		parts += fmt.Sprintf(`,%q:%q`, strings.ToLower(name), base64.StdEncoding.EncodeToString(part.(api.SchedulePart).File))
	}
	_, err = perform(t.Context(), e, "ImportSchedule", `{"name":"back","file":`+file.String()+`,"start":"AAAA"}`, nil)
	wantCode(t, "a broken start", err, api.BadSchedule)
	_, err = perform(t.Context(), e, "ImportSchedule", `{"name":"back","file":`+file.String()+parts+`}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	if back := sample("back", ""); !slices.Equal(back, fitted) {
		t.Error("the imported schedule gives other samples")
	}
	_, err = perform(t.Context(), e, "MakeSchedule",
		`{"name":"x","kind":"start","dataset":"smooth","schedule":"fit"}`, nil)
	wantCode(t, "a start under fitted coefficients", err, api.BadRequest)
	nodes := makeGaussian(t, e, `{"name":"nodes","kind":"gaussian","dataset":"smooth","solver":"ipndm","nfe":3}`)
	if of := nodes.Sampler; of == nil || of.Solver != "ipndm" || of.NFE != 3 {
		t.Errorf("nodes for %+v", of)
	}
	if !slices.Equal(sample("nodes", ""), sample("nodes", `,"solver":"ipndm"`)) {
		t.Error("the nodes' own solver is not the default")
	}
}
