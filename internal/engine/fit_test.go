package engine

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
)

// Coefficients are fitted to a model's trajectories, on a schedule without a start, and serve the solver "fitted".
func TestFittedSchedule(t *testing.T) {
	e := openSmall(t, Config{Device: devicetest.Open(t)})
	act(t, e, "MakeSchedule", `{"name":"path","kind":"geodesic","model":"tiny","dataset":"smooth","statistics":true}`)
	made := reply[api.ScheduleInfo](t, e, "MakeSchedule",
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
	if p := reply[api.Plan](t, e, "PlanSampler", `{"schedule":"fit","nfe":3}`); p.Solver != "fitted" || p.NFE != 3 {
		t.Errorf("plan of %q with %d evaluations", p.Solver, p.NFE)
	}
	// Its files bring everything back, and an import without them is refused.
	file, err := json.Marshal(reply[any](t, e, "ExportSchedule", `{"schedule":"fit"}`))
	if err != nil {
		t.Fatal(err)
	}
	back := `{"name":"back","file":` + string(file)
	refuse(t, e, "ImportSchedule", back+`,"start":"AAAA"}`, api.BadSchedule)
	for _, name := range []string{"Statistics", "Fitted"} {
		refuse(t, e, "ImportSchedule", back+`}`, api.BadSchedule)
		part := reply[api.SchedulePart](t, e, "Export"+name, `{"schedule":"fit"}`)
		back += fmt.Sprintf(`,%q:%q`, strings.ToLower(name), base64.StdEncoding.EncodeToString(part.File))
	}
	act(t, e, "ImportSchedule", back+`}`)
	if back := sample("back", ""); !slices.Equal(back, fitted) {
		t.Error("the imported schedule gives other samples")
	}
	refuse(t, e, "MakeSchedule", `{"name":"x","kind":"start","dataset":"smooth","schedule":"fit"}`, api.BadRequest)
}
