package engine

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
)

// What a warm-up has compiled no request compiles again; what it cannot compile it counts and passes over.
func TestWarmUp(t *testing.T) {
	dir := t.TempDir()
	writeModel(t, filepath.Join(dir, "models", "tiny"), tiny, 1)
	if info := act(t, reopen(t, dir, Config{}), "ServerInfo", ""); info["warming"] != nil {
		t.Errorf("without a warm-up ServerInfo tells of %v", info["warming"])
	}
	e := reopen(t, dir, Config{Warm: []string{"nobody", "tiny", "tiny:edm", "tiny:nothing"}})
	waitFor(t, func() bool { return e.warming.snapshot().Done == 8 })
	if w := *e.warming.snapshot(); w != (api.Warming{Done: 8, Total: 8, Failed: 4}) {
		t.Errorf("at the end it tells %+v", w)
	}
	compiled := e.device.opened().Stats().Compiled
	get(t, e, "Sample", `{"model":"tiny","n":2,"steps":2}`)
	get(t, e, "Sample", `{"model":"tiny","n":64,"steps":2,"schedule":"edm"}`)
	if n := e.device.opened().Stats().Compiled; n != compiled {
		t.Errorf("%d programs were compiled after the warm-up", n-compiled)
	}
}

// A warm-up gives way to whoever waits for the device, and ends with the engine.
func TestWarmUpGivesWay(t *testing.T) {
	dir := t.TempDir()
	writeModel(t, filepath.Join(dir, "models", "tiny"), tiny, 1)
	e := reopen(t, dir, Config{Slots: 1})
	if err := e.queue.Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { _ = e.queue.Acquire(ctx) }()
	waitFor(t, func() bool { n, _ := e.queue.Load(); return n == 1 })
	e.cfg.Warm = []string{"tiny"}
	e.warm()
	began := func() bool { w := e.warming.snapshot(); return w.Done > 0 || w.Current != "" }
	if began() {
		t.Error("it began while somebody waited")
	}
	cancel()
	waitFor(t, began)
	e.warming.close()
}
