package engine

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
)

// The bench of a schedule made for a solver tells what making it told, whole and by band.
func TestBenchAgreesWithMakeSchedule(t *testing.T) {
	e := open(t)
	putSmooth(t, e, "smooth", 48)
	want := reply[api.ScheduleInfo](t, e, "MakeSchedule",
		`{"name":"two","kind":"gaussian","dataset":"smooth","solver":"dpmpp2m","nfe":5,"basis":"dct","k":16,"T":400}`).Bench
	got := get(t, e, "BenchSchedule", `{"dataset":"smooth","schedules":["two"],"solvers":["dpmpp2m"],"nfe":[5]}`)
	w2, subspace := column[float64](got, "w2_squared"), column[int32](got, "subspace")
	if len(w2) != 3 || subspace[0] != -1 || subspace[2] != 1 {
		t.Fatalf("subspaces %v", subspace)
	}
	for i, v := range []float64{want.Nodes.W2, want.Bands[0].Nodes, want.Bands[1].Nodes} {
		if math.Abs(w2[i]-v) > 1e-12*v {
			t.Errorf("subspace %d: %g, want %g", subspace[i], w2[i], v)
		}
	}
	if spread, shift := column[float64](got, "spread")[0], column[float64](got, "shift")[0]; math.Abs(
		spread+shift-w2[0]) > 1e-12*w2[0] {
		t.Errorf("%g and %g do not add up to %g", spread, shift, w2[0])
	}
	if want.Baseline.W2 < want.Nodes.W2 || want.Bands[0].Baseline+want.Bands[1].Baseline > want.Baseline.W2*(1+1e-12) {
		t.Errorf("the better of EDM's grids: %+v, %+v", want.Baseline, want.Bands)
	}
}

// Combinations come in the order asked for, classes are measured on their own Gaussians, and what cannot be is refused.
func TestBenchRows(t *testing.T) {
	e := open(t)
	putSmooth(t, e, "smooth", 48)
	r := get(t, e, "BenchSchedule",
		`{"dataset":"smooth","schedules":["edm",{"edm":{"T":400}}],"solvers":["euler","heun"],"nfe":[5,8]}`)
	var order []string
	for i := range r.n {
		order = append(order, fmt.Sprint(column[int32](r, "schedule")[i], column[int32](r, "solver")[i],
			column[int32](r, "nfe")[i], column[int32](r, "subspace")[i]))
	}
	if r.n != 16 || order[0] != "0 0 5 -1" || order[1] != "0 0 5 0" || order[7] != "0 1 8 0" || order[15] != "1 1 8 0" {
		t.Errorf("rows %q", order)
	}
	for body, code := range map[string]api.Code{
		`{"dataset":"smooth","solvers":["heun"],"nfe":[1]}`:                 api.BadRequest,
		`{"dataset":"smooth","solvers":["rk4"],"nfe":[5]}`:                  api.BadRequest,
		`{"dataset":"nowhere","nfe":[5]}`:                                   api.DatasetNotFound,
		`{"dataset":"smooth","nfe":[5],"solvers":["local"]}`:                api.BadRequest,
		`{"dataset":"smooth","nfe":[5],"per_class":true}`:                   api.BadRequest, // withdrawn
		`{"dataset":"smooth","nfe":[` + strings.Repeat("5,", 1<<17) + `5]}`: api.TooLarge,
	} {
		refuse(t, e, "BenchSchedule", body, code)
	}
}
