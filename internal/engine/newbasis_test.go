package engine

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// checkerboard is a basis that nothing but this file knows: P_1 keeps the white squares of k pixels, default all of
// them.
var checkerboard = basis.Definition{
	Name: "checkerboard", Usage: "the white squares", Made: true,
	Formula: func(h, w, k int, _ []int) (*basis.Basis, error) {
		var rows [][]float64
		for i := range h * w {
			if (i/w+i%w)%2 == 0 && (k == 0 || len(rows) < k) {
				row := make([]float64, h*w)
				row[i] = 1
				rows = append(rows, row)
			}
		}
		return basis.Dense(h, w, map[int][][]float64{basis.Shared: rows})
	},
	CheckK: func(k int) string {
		if k%2 != 0 {
			return fmt.Sprintf("k must be even for basis checkerboard, got %d", k)
		}
		return ""
	},
}

func init() { basis.Register(checkerboard) }

// A registered basis is known everywhere by its definition alone: a run learns on it, its model samples the same after
// a restart and is evaluated, schedules are uploaded, made and seen on it, MakeBasis stores it, and its name is
// reserved.
func TestRegisteredBasis(t *testing.T) {
	e := open(t)
	familyRun(t, e, "squares", `{"basis":"checkerboard","k":30}`)
	const body = `{"model":"squares","n":2,"steps":2,"dtype":"float32"}`
	want := column[float32](get(t, e, "Sample", body), "sample")
	again := reopen(t, filepath.Dir(e.catalog.Folders().Models), Config{})
	if !slices.Equal(column[float32](get(t, again, "Sample", body), "sample"), want) {
		t.Error("the model samples differently after a restart")
	}
	get(t, again, "TrainStep", `{"run":"squares"}`)
	squares, err := again.catalog.Model("squares")
	if err != nil {
		t.Fatal(err)
	}
	if info := squares.Describe().Schedule; info.Basis != "checkerboard" || info.J != 2 || info.K != 30 {
		t.Errorf("its schedule: %+v", info)
	}
	get(t, again, "EvaluateModel", `{"model":"squares","dataset":"noise","points":2,"samples":2}`)
	act(t, again, "MakeSchedule",
		`{"name":"geodesic","kind":"geodesic","model":"tiny","dataset":"noise","basis":"checkerboard","points":4,`+
			`"samples":2,"T":100}`)

	table := knots(knot{-1, 0, 0, 1e-6}, knot{-1, 0, 100, 100}, knot{-1, 1, 0, 1e-6}, knot{-1, 1, 40, 1},
		knot{-1, 1, 100, 100})
	if _, err := put(again, `{"op":"PutSchedule","name":"s","basis":"checkerboard"}`, scheduleTable, table); err != nil {
		t.Fatal(err)
	}
	sample := func(schedule string) []float32 {
		return column[float32](get(t, again, "Sample",
			`{"model":"tiny","n":2,"steps":2,"dtype":"float32","schedule":"`+schedule+`"}`), "sample")
	}
	act(t, again, "MakeBasis", `{"name":"stored","kind":"checkerboard","dataset":"noise"}`)
	if _, err := put(again, `{"op":"PutSchedule","name":"on-stored","basis":"stored"}`, scheduleTable, table); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(sample("s"), sample("on-stored")) {
		t.Error("the stored basis is not that of the formula")
	}

	for body, says := range map[string]string{
		`{"name":"checkerboard","kind":"haar","dataset":"noise"}`: "reserved",
		`{"name":"b","kind":"dct","dataset":"noise"}`:             "checkerboard", // among what it may be
	} {
		_, err := perform(t.Context(), again, "MakeBasis", body, nil)
		wantCode(t, body, err, api.BadRequest)
		if err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", body, err)
		}
	}
	for _, body := range []string{
		`{"op":"PutSchedule","name":"c","basis":"checkerboard","cuts":[2]}`,
		`{"op":"PutSchedule","name":"c","basis":"haar","cuts":[2]}`,
	} {
		_, err := put(again, body, scheduleTable, table)
		wantCode(t, body, err, api.BadRequest)
	}
	if _, err := put(again, `{"op":"PutSchedule","name":"c","basis":"checkerboard","k":3}`, scheduleTable,
		table); err == nil {
		t.Error("an odd k is taken")
	}
}
