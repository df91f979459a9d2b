package engine

import (
	"fmt"
	"sync"
	"testing"

	"github.com/anisoflight/anisoflight/internal/testing/foldertest"
)

// together runs requests for samples at once, and meanwhile once they have begun.
func together(t *testing.T, e *Engine, bodies []string, meanwhile func()) []*rows {
	t.Helper()
	got := make([]*rows, len(bodies))
	var all sync.WaitGroup
	for i, body := range bodies {
		all.Go(func() {
			var err error
			if got[i], err = attempt(t.Context(), e, "Sample", body); err != nil {
				t.Error(err)
			}
		})
	}
	meanwhile()
	all.Wait()
	return got
}

// Requests that were evaluated together get the samples that each gets alone, whatever they have in common but the
// network. They wait for one slot.
func TestTogetherAsAlone(t *testing.T) {
	dir := foldertest.New(t)
	alone, e := reopen(t, dir, Config{Apart: true}), reopen(t, dir, Config{Slots: 1})
	var bodies []string
	for i, more := range []string{
		`"steps":2`, `"nfe":4,"solver":"ab"`, `"steps":3,"solver":"dpmpp2m","every":2`, `"steps":2,"S_churn":2`,
		`"nfe":4,"solver":"unipc"`,
	} {
		bodies = append(bodies, fmt.Sprintf(`{"model":"tiny","n":%d,"seed":%d,"dtype":"float32",%s}`, 1+i%4, 10*i, more))
	}
	waiting := func() int { n, _ := e.batcher.Load(); return n }
	if err := e.batcher.Acquire(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := together(t, e, bodies, func() {
		waitFor(t, func() bool { return waiting() == len(bodies) })
		e.batcher.Release()
	})
	if waiting() != 0 || e.batcher.Waiting() != 0 {
		t.Errorf("%d and %d wait", waiting(), e.batcher.Waiting())
	}
	get(t, e, "Sample", bodies[1]) // the slot is free
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
