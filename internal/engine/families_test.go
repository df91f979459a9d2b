package engine

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/train/data"
)

// familyRun trains two steps of a family from tiny, frozen and with the cheapest estimator, and saves the model.
func familyRun(t *testing.T, e *Engine, name, family string) {
	t.Helper()
	if _, err := e.catalog.Dataset("noise"); err != nil {
		putImages(t, e, "noise", 24)
	}
	act(t, e, "CreateRun", fmt.Sprintf(`{"name":%q,"stage":"anisotropic","dataset":"noise","model":"tiny","batch":8,
		"knots":6,"T":100,"init":"edm","kimg":1,
		"family":%s,"train_network":false,"estimator":"explicit"}`, name, family))
	r := get(t, e, "TrainStep", `{"run":"`+name+`","steps":2}`)
	for i, loss := range column[float64](r, "loss") {
		if math.IsNaN(loss) || !(column[float64](r, "schedule_grad_norm")[i] > 0) {
			t.Errorf("%s, step %d: loss %v", family, i+1, loss)
		}
	}
	act(t, e, "SaveModel", fmt.Sprintf(`{"run":%q,"name":%q}`, name, name))
}

// A basis per class is made of the run's images, stored with the run and the model, and works on after both have been
// read back; each sample has its own class's, and there is none for samples without a class.
func TestFamilyOfClasses(t *testing.T) {
	e := open(t)
	familyRun(t, e, "own", `{"per_class":true,"basis":"pca_per_class","k":3}`)
	const body = `{"model":"own","labels":[2,0,1],"steps":2,"dtype":"float32"}`
	want := column[float32](get(t, e, "Sample", body), "sample")
	refuse(t, e, "Sample", `{"model":"own","labels":[-1],"steps":2}`, api.BadRequest) // no label

	again := reopen(t, e.cfg.Dir, Config{})
	if !slices.Equal(column[float32](get(t, again, "Sample", body), "sample"), want) {
		t.Error("the model samples differently after a restart")
	}
	get(t, again, "TrainStep", `{"run":"own"}`) // the basis came back with the run's state
	if info := scheduleOf(t, again, "own"); info.Basis != "pca_per_class" || info.K != 3 || info.J != 2 || !info.PerClass {
		t.Errorf("its schedule: %+v", info)
	}

	// Uploaded schedules may name the model's own basis, which other models do not have.
	table := knots(knot{-1, 0, 0, 1e-6}, knot{-1, 0, 100, 100}, knot{-1, 1, 0, 1e-6}, knot{-1, 1, 40, 1},
		knot{-1, 1, 100, 100})
	upload(t, again, `{"op":"PutSchedule","name":"s","basis":"pca_per_class"}`, scheduleTable, table)
	get(t, again, "Sample", `{"model":"own","labels":[1],"steps":2,"schedule":"s"}`)
	refuse(t, again, "Sample", `{"model":"tiny","labels":[1],"steps":2,"schedule":"s"}`, api.BadRequest)
}

// Three nested bands train, sample, and come back.
func TestFamilyOfBands(t *testing.T) {
	e := open(t)
	familyRun(t, e, "bands", `{"basis":"dct","cuts":[2,4]}`)
	const body = `{"model":"bands","n":2,"steps":2,"dtype":"float32"}`
	want := column[float32](get(t, e, "Sample", body), "sample")
	again := reopen(t, e.cfg.Dir, Config{})
	if !slices.Equal(column[float32](get(t, again, "Sample", body), "sample"), want) {
		t.Error("the model samples differently after a restart")
	}
	if info := scheduleOf(t, again, "bands"); info.J != 3 || !slices.Equal(info.Cuts, []int{2, 4}) {
		t.Errorf("its schedule: %+v", info)
	}
	get(t, again, "EvaluateModel", `{"model":"bands","dataset":"noise","points":2,"samples":2}`)
	in := api.Schema{Columns: []api.Column{
		tables.ImageColumn("x", api.Float32, data.HWC, 8, 8, 1),
		{Name: "label", Type: api.Int32},
		{Name: "g", Type: api.Float64, Kind: api.List, Shape: []int{3}},
	}}
	x, err := openExchange(t.Context(), again, "Denoise", `{"model":"tiny","basis":"dct","cuts":[1,5]}`, in)
	if err != nil {
		t.Fatal(err)
	}
	x.Close()
	_, err = openExchange(t.Context(), again, "Denoise", `{"model":"tiny","basis":"dct","cuts":[2,8]}`, in)
	wantCode(t, "a cut of every frequency", err, api.BadRequest)
}

// scheduleOf describes a model's own schedule.
func scheduleOf(t *testing.T, e *Engine, model string) *api.ScheduleInfo {
	t.Helper()
	return reply[api.ModelInfo](t, e, "DescribeModel", fmt.Sprintf(`{"model":%q}`, model)).Schedule
}

// corner returns a basis of two pixels of 8×8 images, as it is uploaded.
func corner() (api.Schema, api.Batch) {
	vectors := make([]float64, 2*64)
	vectors[0], vectors[64+9] = 1, 1
	return api.Schema{Columns: []api.Column{
		{Name: "label", Type: api.Int32},
		{Name: "vector", Type: api.Float64, Kind: api.Tensor, Shape: []int{8, 8}, DimNames: []string{"H", "W"}},
	}}, api.Batch{Rows: 2, Cols: []any{[]int32{-1, -1}, vectors}}
}

func TestUploadedBasis(t *testing.T) {
	e := open(t)
	in, two := corner()
	if n, err := put(e, `{"op":"PutBasis","name":"corner"}`, in, two); err != nil || n != 2 {
		t.Fatalf("%d, %v", n, err)
	}
	// A schedule on it samples, and survives a restart and its basis.
	table := knots(knot{-1, 0, 0, 1e-6}, knot{-1, 0, 10, 100}, knot{-1, 1, 0, 1e-6}, knot{-1, 1, 4, 1},
		knot{-1, 1, 10, 100})
	upload(t, e, `{"op":"PutSchedule","name":"s","basis":"corner"}`, scheduleTable, table)
	const body = `{"model":"tiny","n":2,"steps":2,"schedule":"s","dtype":"float32"}`
	a := get(t, e, "Sample", body)
	// It can be read back, by its own name and by the schedule's.
	for _, body := range []string{`{"basis":"corner"}`, `{"schedule":"s"}`} {
		back := get(t, e, "Basis", body)
		if !slices.Equal(column[int32](back, "label"), []int32{-1, -1}) ||
			!slices.Equal(column[float64](back, "vector"), two.Cols[1].([]float64)) {
			t.Errorf("the basis of %s comes back different", body)
		}
	}
	for body, want := range map[string]api.Code{
		`{}`: api.BadRequest, `{"basis":"corner","schedule":"s"}`: api.BadRequest, `{"schedule":"edm"}`: api.BadRequest,
		`{"basis":"nobody"}`: api.BasisNotFound, `{"schedule":"nobody"}`: api.ScheduleNotFound,
	} {
		refuse(t, e, "Basis", body, want)
	}
	_, err := put(e, `{"op":"PutSchedule","name":"s2","basis":"corner","k":3}`, scheduleTable, table)
	wantCode(t, "k", err, api.BadRequest)
	act(t, e, "DeleteBasis", `{"basis":"corner"}`) // the schedule has a copy of its own
	kept := get(t, reopen(t, e.cfg.Dir, Config{}), "Sample", body)
	if !slices.Equal(column[float32](kept, "sample"), column[float32](a, "sample")) {
		t.Error("the schedule has changed with its basis")
	}
	_, err = put(e, `{"op":"PutSchedule","name":"s2","basis":"corner"}`, scheduleTable, table)
	wantCode(t, "deleted basis", err, api.BasisNotFound)
	// Its name is free for a schedule without a basis, and the other way round.
	plain := knots(knot{-1, 0, 0, 1e-6}, knot{-1, 0, 10, 100})
	upload(t, e, `{"op":"PutSchedule","name":"s","replace":true}`, scheduleTable, plain)
	if left, err := os.ReadDir(filepath.Join(e.catalog.Folders().Schedules, "s.schedule")); err != nil || len(left) != 2 {
		t.Errorf("beside the schedule and its manifest there is something of the old one: %v, %v", left, err)
	}
	act(t, e, "DeleteSchedule", `{"schedule":"s"}`)
}
