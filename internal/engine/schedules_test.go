package engine

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/testing/apitest"
	"github.com/anisoflight/anisoflight/schedule"
)

var scheduleTable = api.Schema{Columns: []api.Column{
	{Name: "label", Type: api.Int32},
	{Name: "subspace", Type: api.Int32},
	{Name: "t", Type: api.Float64},
	{Name: "g", Type: api.Float64},
}}

// knot is one row of an uploaded schedule.
type knot struct {
	label, subspace int32
	t, g            float64
}

func knots(rows ...knot) api.Batch {
	var label, subspace []int32
	var t, g []float64
	for _, r := range rows {
		label, subspace, t, g = append(label, r.label), append(subspace, r.subspace), append(t, r.t), append(g, r.g)
	}
	return api.Batch{Rows: len(rows), Cols: []any{label, subspace, t, g}}
}

// put uploads batches and commits.
func put(e *Engine, command string, in api.Schema, batches ...api.Batch) (int64, error) {
	u, err := openUpload(context.Background(), e, command, in)
	if err != nil {
		return 0, err
	}
	return apitest.Send(u, batches...)
}

func TestEvaluateScheduleOfEDM(t *testing.T) {
	e := open(t)
	r := get(t, e, "EvaluateSchedule", `{"schedule":"edm","points":33}`)
	times, g := column[float64](r, "t"), column[float64](r, "g")
	if times[0] != 0 || times[32] != 6400 || g[32] != 6400 || math.Abs(g[0]/schedule.DefaultG0-1) > 1e-12 {
		t.Errorf("ends: t %v … %v, g %v … %v", times[0], times[32], g[0], g[32])
	}
	same := get(t, e, "EvaluateSchedule", `{"schedule":"tiny","points":33}`) // a model without a schedule samples with edm
	if !slices.Equal(g, column[float64](same, "g")) {
		t.Error("the model's own schedule is not edm")
	}
	short := get(t, e, "EvaluateSchedule", `{"schedule":{"edm":{"T":400}},"t":[400,0,100]}`)
	if got := column[float64](short, "t"); !slices.Equal(got, []float64{0, 100, 400}) ||
		column[float64](short, "g")[2] != 400 {
		t.Errorf("t %v", got)
	}
}

func TestUploadedSchedule(t *testing.T) {
	e := open(t)
	rows := []knot{
		{1, 0, 0, 1e-6}, {1, 0, 3, 1}, {1, 0, 10, 100}, {0, 0, 0, 1e-5}, {0, 0, 10, 100}, {2, 0, 0, 1e-5}, {2, 0, 10, 100},
	}
	n, err := put(e, `{"op":"PutSchedule","name":"mine","basis":"none"}`, scheduleTable, knots(rows[:3]...),
		knots(rows[3:]...))
	if err != nil || n != 7 {
		t.Fatalf("%d rows, %v", n, err)
	}
	r := get(t, e, "EvaluateSchedule", `{"schedule":"mine","points":2}`)
	if !slices.Equal(column[int32](r, "label"), []int32{0, 0, 1, 1, 2, 2}) {
		t.Errorf("labels %v: sorted by label, subspace, t", column[int32](r, "label"))
	}
	some := get(t, e, "EvaluateSchedule", `{"schedule":"mine","t":[3],"labels":[1]}`)
	if g := column[float64](some, "g"); len(g) != 1 || math.Abs(g[0]-1) > 1e-12 {
		t.Errorf("g at a knot is %v, want 1", g)
	}
	// A per-class schedule steps each sample on its own class's path and refuses samples without one.
	get(t, e, "Sample", `{"model":"tiny","labels":[0,1,2],"steps":2,"schedule":"mine"}`)
	refuse(t, e, "Sample", `{"model":"tiny","labels":[-1],"steps":2,"schedule":"mine"}`, api.BadRequest) // no label
	narrow := reopen(t, e.cfg.Dir, Config{MaxBytes: 1 << 26})
	refuse(t, narrow, "Sample", `{"model":"tiny","n":1,"steps":100000,"schedule":"mine"}`, api.TooLarge)
	refuse(t, e, "EvaluateSchedule", `{"schedule":"mine","labels":[3]}`, api.BadRequest)   // unknown label
	refuse(t, e, "EvaluateSchedule", `{"schedule":"mine","t":[11]}`, api.BadRequest)       // t outside
	refuse(t, e, "EvaluateSchedule", `{"schedule":"edm","points":99999999}`, api.TooLarge) // points

	again := reopen(t, e.cfg.Dir, Config{})
	kept := get(t, again, "EvaluateSchedule", `{"schedule":"mine","points":2}`)
	if !slices.Equal(column[float64](kept, "g"), column[float64](r, "g")) {
		t.Error("the schedule changed over a restart")
	}
}

func TestScheduleUploadRejects(t *testing.T) {
	e := open(t)
	ok := []knot{{-1, 0, 0, 1e-6}, {-1, 0, 10, 100}}
	upload(t, e, `{"op":"PutSchedule","name":"first"}`, scheduleTable, knots(ok...))
	tests := map[string]struct {
		command string
		rows    []knot
		code    api.Code
	}{
		"taken":         {`"name":"first"`, ok, api.NameTaken},
		"model's name":  {`"name":"tiny","replace":true`, ok, api.NameTaken},
		"unknown basis": {`"name":"s","basis":"nobody"`, ok, api.BasisNotFound},
		"empty":         {`"name":"s"`, nil, api.BadSchedule},
		"t falls":       {`"name":"s"`, []knot{{-1, 0, 0, 1}, {-1, 0, 5, 2}, {-1, 0, 4, 3}}, api.BadSchedule},
	}
	for name, test := range tests {
		_, err := put(e, `{"op":"PutSchedule",`+test.command+`}`, scheduleTable, knots(test.rows...))
		wantCode(t, name, err, test.code)
	}
	if _, err := put(e, `{"op":"PutSchedule","name":"first","replace":true}`, scheduleTable, knots(ok...)); err != nil {
		t.Errorf("replace: %v", err)
	}
	_, err := put(e, `{"op":"PutSchedule","name":"s"}`, api.Schema{Columns: scheduleTable.Columns[:3]})
	wantCode(t, "missing column", err, api.BadTensor)
	if _, err := e.catalog.ScheduleNamed(api.ScheduleRef{Name: "s"}); err == nil {
		t.Error("a refused upload left a schedule")
	}
}

func TestMakeScheduleByFormula(t *testing.T) {
	e := open(t)
	for _, kind := range []string{"edm", "log-linear", "cosine"} {
		act(t, e, "MakeSchedule", `{"name":"made-`+kind+`","kind":"`+kind+`","T":400,"knots":16}`)
		r := get(t, e, "EvaluateSchedule", `{"schedule":"made-`+kind+`","points":3}`)
		if g := column[float64](r, "g"); g[2] != 400 || g[0] > 2e-9 || g[1] <= g[0] || g[1] >= g[2] {
			t.Errorf("%s: g %v", kind, g)
		}
	}
	refuse(t, e, "MakeSchedule", `{"name":"made-edm","kind":"edm"}`, api.NameTaken)  // taken
	refuse(t, e, "MakeSchedule", `{"name":"x","kind":"edm","T":-1}`, api.BadRequest) // T
	act(t, e, "DeleteSchedule", `{"schedule":"made-cosine"}`)
	refuse(t, e, "EvaluateSchedule", `{"schedule":"made-cosine"}`, api.ScheduleNotFound) // deleted
	all := act(t, e, "ListSchedules", "")["schedules"].([]any)
	var names []string
	for _, s := range all {
		names = append(names, s.(map[string]any)["name"].(string))
	}
	if !slices.Equal(names, []string{"made-edm", "made-log-linear", "tiny"}) {
		t.Errorf("listed: %v", names)
	}
}
