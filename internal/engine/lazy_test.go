package engine

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// What is stored is listed and described without a device, which a server that cannot open one says when it is needed.
func TestMetadataNeedsNoDevice(t *testing.T) {
	dir := newFolder(t)
	want := act(t, reopen(t, dir, Config{}), "DescribeModel", `{"model":"tiny"}`)
	e, err := Open(t.Context(), Config{
		Dir: dir, Logger: slog.New(slog.DiscardHandler),
		OpenDevice: func() (*device.Device, error) {
			return nil, errors.New("there is no device")
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	putImages(t, e, "noise", 5)
	got := act(t, e, "DescribeModel", `{"model":"tiny"}`)
	for _, field := range []string{"hash", "parameters", "version", "precision", "model_type"} {
		if got[field] != want[field] {
			t.Errorf("%s is %v, with a device %v", field, got[field], want[field])
		}
	}
	for _, name := range []string{"ServerInfo", "ListModels", "ListSchedules", "ListBases", "ListDatasets", "ListRuns"} {
		act(t, e, name, "")
	}
	act(t, e, "MakeSchedule", `{"name":"s","kind":"edm"}`)
	act(t, e, "LoadModel", `{"name":"tiny"}`)
	get(t, e, "EvaluateSchedule", `{"schedule":"tiny"}`)
	if flights := e.List(t.Context()); len(flights) != 3 {
		t.Errorf("listed %v", flights)
	}
	refuse(t, e, "Sample", `{"model":"tiny","n":1,"steps":2}`, api.Internal) // a sample
	if err := e.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// Weights beyond the device's memory leave the device, the least recently used first; whoever holds a model keeps it,
// and what has left comes back with the same samples.
func TestModelsLeaveWhenMemoryIsShort(t *testing.T) {
	dir := t.TempDir()
	// Its weights take more memory than its evaluation.
	wide := strings.NewReplacer(`"img_resolution":8`, `"img_resolution":4`, `"model_channels":8`, `"model_channels":32`)
	for i, name := range []string{"a", "b", "c"} {
		writeModel(t, filepath.Join(dir, "models", name), wide.Replace(tiny), uint64(i+1))
	}
	e := reopen(t, dir, Config{})
	m, err := e.catalog.Model("a")
	if err != nil {
		t.Fatal(err)
	}
	e = reopen(t, dir, Config{Device: limited(t, 7*2*int64(m.Net.ParamCount()))})
	sample := func(model string) []float32 {
		return column[float32](get(t, e, "Sample",
			`{"model":"`+model+`","n":2,"steps":1,"solver":"euler","dtype":"float32"}`), "sample")
	}
	loaded := func(want ...string) {
		t.Helper()
		var got []string
		for _, m := range e.catalog.Models() {
			if m.Weights() != nil {
				got = append(got, m.Name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v are loaded, want %v", got, want)
		}
	}
	loaded()
	first := sample("a")
	sample("b")
	loaded("a", "b")
	sample("a")
	sample("c") // b was used longest ago
	loaded("a", "c")
	a, err := e.catalog.Model("a")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Hold(); err != nil {
		t.Fatal(err)
	}
	sample("c")
	sample("b")
	loaded("a", "b")
	a.Release()
	sample("c")
	loaded("b", "c")
	if !slices.Equal(sample("a"), first) {
		t.Error("a model samples differently once it has been unloaded and loaded again")
	}
}

// A folder that changes under a model is not taken for it, and its hash is not remembered for other bytes.
func TestChangedFolderIsNoticed(t *testing.T) {
	e := open(t)
	folder := filepath.Join(e.catalog.Folders().Models, "tiny")
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	writeModel(t, folder, tiny, 2)
	later := time.Now().Add(time.Second)
	if err := os.Chtimes(filepath.Join(folder, "model.safetensors"), later, later); err != nil {
		t.Fatal(err)
	}
	_, err := attempt(t.Context(), e, "Sample", `{"model":"tiny","n":1,"steps":2}`)
	wantCode(t, "a sample of what was there", err, api.BadModel)
	old := act(t, e, "DescribeModel", `{"model":"tiny"}`)["hash"]
	act(t, e, "UnloadModel", `{"model":"tiny"}`)
	if now := act(t, e, "LoadModel", `{"name":"tiny"}`)["hash"]; now == old {
		t.Errorf("other weights have the same hash %v", now)
	}
	get(t, e, "Sample", `{"model":"tiny","n":1,"steps":2}`)
}
