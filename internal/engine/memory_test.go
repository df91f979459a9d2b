package engine

import (
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/internal/testing/foldertest"
)

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
