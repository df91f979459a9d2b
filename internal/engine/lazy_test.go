package engine

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/testing/foldertest"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// What is stored is listed and described without a device, which a server that cannot open one says when it is needed.
func TestMetadataNeedsNoDevice(t *testing.T) {
	dir := foldertest.New(t)
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
