package engine

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
)

func basisTable(h, w int) api.Schema {
	return api.Schema{Columns: []api.Column{
		{Name: "label", Type: api.Int32},
		{Name: "vector", Type: api.Float64, Kind: api.Tensor, Shape: []int{h, w}, DimNames: []string{"H", "W"}},
	}}
}

// axis is the unit vector along one pixel of an 8×8 image.
func axis(pixel int) []float64 {
	v := make([]float64, 64)
	v[pixel] = 1
	return v
}

func TestUploadedBasis(t *testing.T) {
	e := open(t)
	two := api.Batch{Rows: 2, Cols: []any{[]int32{-1, -1}, append(axis(0), axis(9)...)}}
	if n, err := put(e, `{"op":"PutBasis","name":"corner"}`, basisTable(8, 8), two); err != nil || n != 2 {
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
