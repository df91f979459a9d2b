package engine

import (
	"fmt"
	"sync"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
)

// crowd runs requests at once in one slot, which is released when all of them wait for it.
func crowd(t *testing.T, e *Engine, bodies []string, run func(i int, job *api.Job)) {
	t.Helper()
	if err := e.batcher.Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i, body := range bodies {
		job, err := prepare(t.Context(), e, "Sample", body)
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() { run(i, job) })
	}
	waitFor(t, func() bool { n, _ := e.batcher.Load(); return n == len(bodies) })
	e.batcher.Release()
	all.Wait()
	if n, _ := e.batcher.Load(); n != 0 || e.batcher.Waiting() != 0 {
		t.Errorf("%d and %d wait", n, e.batcher.Waiting())
	}
	if err := e.batcher.Acquire(t.Context()); err != nil { // the slot is free
		t.Error(err)
	}
	e.batcher.Release()
}

// Requests that were evaluated together get the samples that each gets alone, whatever they have in common but the
// network.
func TestTogetherAsAlone(t *testing.T) {
	dir := newFolder(t)
	alone, e := reopen(t, dir, Config{Apart: true}), reopen(t, dir, Config{Slots: 1})
	var bodies []string
	for i, more := range []string{
		`"steps":4`, `"nfe":9,"solver":"ab"`, `"steps":5,"solver":"dpmpp2m","every":2`,
		`"steps":3,"S_churn":2`, `"nfe":6,"solver":"unipc"`, `"steps":4`,
	} {
		bodies = append(bodies, fmt.Sprintf(`{"model":"tiny","n":%d,"seed":%d,"dtype":"float32",%s}`, 1+i%4, 10*i, more))
	}
	got := make([]*rows, len(bodies))
	crowd(t, e, bodies, func(i int, job *api.Job) {
		var err error
		if got[i], err = collect(t.Context(), job); err != nil {
			t.Error(err)
		}
	})
	if e.batcher.Joined() < 5 {
		t.Errorf("%d evaluations were made in another's slot; this test wants some", e.batcher.Joined())
	}
	for i, body := range bodies {
		if want := get(t, alone, "Sample", body); !sameSamples(got[i], want) {
			t.Errorf("%s: together it gave other samples than alone", body)
		}
	}
	if n := alone.batcher.Joined(); n != 0 {
		t.Errorf("%d evaluations were joined where none should be", n)
	}
}
