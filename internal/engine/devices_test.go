package engine

import (
	"context"
	"fmt"
	"reflect"
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
