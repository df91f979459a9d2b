package engine

import (
	"fmt"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/testing/alloctest"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// limited returns a pure-Go device of so many bytes.
func limited(t *testing.T, bytes int64) *device.Device {
	t.Helper()
	dev, err := device.Open(device.Config{Plugin: "go", MemoryLimit: bytes})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dev.Close() })
	return dev
}

// within returns an engine with the model "tiny" on a device of so many bytes.
func within(t *testing.T, bytes int64) *Engine {
	t.Helper()
	return reopen(t, newFolder(t), Config{Device: limited(t, bytes)})
}

// memory reads what GetRun says of a run's.
func memory(t *testing.T, e *Engine, run string) api.RunMemory {
	t.Helper()
	return *reply[api.RunInfo](t, e, "GetRun", fmt.Sprintf(`{"run":%q}`, run)).Memory
}

// TestRunsFitTheMemory: a run is told how its steps fit, trains in parts where the whole
// batch does not, and is refused with both numbers where nothing does.
func TestRunsFitTheMemory(t *testing.T) {
	e := within(t, 1<<30)
	newRun(t, e, "whole", "")
	whole := memory(t, e, "whole")
	if whole.Microbatch != 8 || whole.NeededBytes <= 0 || whole.AvailableBytes <= 0 || whole.WholeBytes != 0 {
		t.Errorf("with plenty: %+v", whole)
	}

	tight := within(t, whole.NeededBytes*3/4)
	newRun(t, tight, "parts", "")
	parts := memory(t, tight, "parts")
	config := act(t, tight, "GetRun", `{"run":"parts"}`)["config"].(map[string]any)
	if parts.Microbatch != 4 || parts.NeededBytes > parts.AvailableBytes || parts.WholeBytes != whole.NeededBytes ||
		config["microbatch"] != 4.0 {
		t.Errorf("with three quarters: %+v, microbatch %v", parts, config["microbatch"])
	}
	if r := get(t, tight, "TrainStep", `{"run":"parts","steps":2}`); r.n != 2 {
		t.Errorf("%d steps in parts", r.n)
	}

	scarce := within(t, 64<<10)
	putImages(t, scarce, "noise", 24)
	refuse(t, scarce, "CreateRun", `{"name":"r","stage":"isotropic","dataset":"noise","model":"tiny","batch":8}`,
		api.TooLarge, "in microbatches of 1 needs an estimated 0.4 MiB", "memory_limit")
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

// TestNetworksAreWeighedBeforeTheyAreMade: a network whose values cannot fit is refused before they are drawn.
func TestNetworksAreWeighedBeforeTheyAreMade(t *testing.T) {
	e := within(t, 256<<20)
	putImages(t, e, "noise", 8)
	var err error
	took := alloctest.Bytes(func() {
		_, err = perform(t.Context(), e, "CreateRun", `{"name":"r","stage":"pretrain","dataset":"noise","batch":8,
			"network":{"model_type":"SongUNet","embedding_type":"positional","encoder_type":"standard",
			"decoder_type":"standard","img_resolution":8,"img_channels":1,"label_dim":1048576,"augment_dim":0,
			"model_channels":128,"channel_mult":[1],"num_blocks":1,"attn_resolutions":[],"dropout":0}}`, nil)
	})
	wantCode(t, "a network of 2 GB", err, api.TooLarge)
	if took > 64<<20 {
		t.Errorf("it took %d MiB to say so", took>>20)
	}
}
