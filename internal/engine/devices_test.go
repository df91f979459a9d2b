package engine

import (
	"context"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/internal/testing/foldertest"
)

// held returns the bytes of buffers on each device.
func held(t *testing.T, e *Engine) (bytes []int64) {
	t.Helper()
	reply, err := e.serverInfo(t.Context(), api.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range reply.BytesByDevice {
		bytes = append(bytes, d.Buffers)
	}
	return bytes
}

// TestSlotsOfSeveralDevices: by default there are four for each.
func TestSlotsOfSeveralDevices(t *testing.T) {
	for _, c := range []struct {
		cfg  Config
		want int
	}{{Config{}, 4}, {Config{Device: devicetest.Host(t, 4)}, 16}, {Config{Device: devicetest.Host(t, 4), Slots: 3}, 3}} {
		queue := reopen(t, t.TempDir(), c.cfg).batcher
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		n := 0
		for queue.Acquire(ctx) == nil {
			n++
		}
		cancel()
		for range n {
			queue.Release()
		}
		if n != c.want {
			t.Errorf("%+v has %d slots, want %d", c.cfg, n, c.want)
		}
	}
}

// TestSamplesOfSeveralDevices: requests side by side, and the buckets of a long one, go to all devices, with the
// samples of one. Weights come to a device when it first needs them, and leave all devices with their model.
func TestSamplesOfSeveralDevices(t *testing.T) {
	dir := foldertest.New(t)
	one := reopen(t, dir, Config{Device: devicetest.Host(t, 1)})
	four := reopen(t, dir, Config{Device: devicetest.Host(t, 4)})
	before := held(t, four)
	var bodies []string
	for i, more := range []string{
		`"n":30,"steps":4,"S_churn":2`, `"n":19,"nfe":5,"solver":"ab"`, `"n":9,"steps":3,"every":1`,
		`"n":20,"steps":3,"guidance":1.5`,
	} {
		bodies = append(bodies, fmt.Sprintf(`{"model":"tiny","seed":%d,"dtype":"float32",%s}`, 10*i, more))
	}
	got := together(t, four, bodies, func() {})
	for i, body := range bodies {
		if want := get(t, one, "Sample", body); !sameSamples(got[i], want) {
			t.Errorf("%s: four devices give other samples than one", body)
		}
	}
	during := held(t, four)
	for k := range before {
		if during[k] <= before[k] {
			t.Errorf("device %d had nothing to do: %d bytes, %d before", k, during[k], before[k])
		}
	}
	act(t, four, "UnloadModel", `{"model":"tiny"}`)
	if after := held(t, four); !reflect.DeepEqual(after, before) {
		t.Errorf("without the model the devices hold %v bytes, before %v", after, before)
	}
}

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

// within returns an engine with the model "tiny" on a device of so many bytes.
func within(t *testing.T, bytes int64) *Engine {
	t.Helper()
	return reopen(t, foldertest.New(t), Config{Device: devicetest.Limited(t, bytes)})
}

// TestSamplesFitTheMemory: where 64 samples at a time would not fit, eight do; where
// eight do not, the request is refused with both numbers.
func TestSamplesFitTheMemory(t *testing.T) {
	e := within(t, 1<<20)
	if r := get(t, e, "Sample", `{"model":"tiny","n":40,"steps":1,"solver":"euler"}`); r.n != 40 {
		t.Errorf("%d samples", r.n)
	}
	if runs := e.device.opened().Work()["evaluate"].Runs; runs != 5 {
		t.Errorf("%d evaluations of 40 samples, want five of eight", runs)
	}
	scarce := within(t, 48<<10)
	_, err := attempt(t.Context(), scarce, "Sample", `{"model":"tiny","n":1,"steps":1,"solver":"euler"}`)
	wantCode(t, "a sample that cannot fit", err, api.TooLarge)
}
