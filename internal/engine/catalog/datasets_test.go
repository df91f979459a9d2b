package catalog

import (
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/train/data"
)

// A folder that another process puts in its place is served at once, and so is one that replaces it; what leads out of
// the data sets is no name.
func TestDatasetsAppear(t *testing.T) {
	c := open(t, t.TempDir())
	store := func(dir string, v uint8, replace bool) {
		t.Helper()
		w, err := data.Create(dir, data.Form{Height: 8, Width: 8, Channels: 1}, 2)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Uint8(slices.Repeat([]uint8{v}, 128), nil), w.Commit(replace)); err != nil {
			t.Fatal(err)
		}
	}
	stored := func() *data.Dataset {
		t.Helper()
		d, err := c.Dataset("late")
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	shows := func(d *data.Dataset, v uint8) {
		t.Helper()
		if x, err := d.Uint8(0, 2); err != nil || len(x) != 128 || x[0] != v {
			t.Errorf("%d values of %d, want 128 of %d, %v", len(x), x[0], v, err)
		}
	}
	if infos := c.DatasetInfos(); len(infos) != 0 {
		t.Fatalf("there are %v", infos)
	}
	store(c.datasetPath("late"), 1, false)
	listed := c.DatasetInfos()
	if len(listed) != 1 || listed[0].Name != "late" || listed[0].Rows != 2 || len(listed[0].Hash) != 64 {
		t.Errorf("listed: %v", listed)
	}
	old := stored()
	shows(old, 1)
	store(c.datasetPath("late"), 2, true)
	shows(stored(), 2)
	shows(old, 1) // a data set that is in use does not change under its reader
	if now := c.DatasetInfos(); now[0].Hash == listed[0].Hash {
		t.Errorf("other images have the same hash: %v", now)
	}
	store(filepath.Join(c.folders.Runs, "elsewhere"), 3, false)
	for _, name := range []string{"../runs/elsewhere", "..", "", "absent"} {
		_, err := c.Dataset(name)
		wantCode(t, name, err, api.DatasetNotFound)
		wantCode(t, "delete "+name, c.DeleteDataset(t.Context(), api.DatasetName{Dataset: name}), api.DatasetNotFound)
	}
}

// A data set that is deleted while it is listed is not called damaged.
func TestDeletedWhileListed(t *testing.T) {
	c := open(t, t.TempDir())
	var all sync.WaitGroup
	defer all.Wait()
	over := make(chan struct{})
	all.Go(func() {
		defer close(over)
		for range 100 {
			w, err := c.CreateDataset("short", data.Form{Height: 1, Width: 1, Channels: 1}, 1)
			if err == nil {
				err = errors.Join(w.Uint8([]uint8{1}, nil), c.PlaceDataset("short", w, false))
			}
			if err == nil {
				err = c.DeleteDataset(t.Context(), api.DatasetName{Dataset: "short"})
			}
			if err != nil {
				t.Error(err)
				return
			}
		}
	})
	for {
		select {
		case <-over:
			return
		default:
		}
		for _, info := range c.DatasetInfos() {
			if info.Integrity.State != api.Intact {
				t.Fatalf("listed as %+v", info)
			}
		}
	}
}
