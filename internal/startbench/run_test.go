package startbench

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/anisoflight/anisoflight/internal/modelbench"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/unet"
)

// A second start reads its programs from disk and computes the same bits: samples, and the whole state after training steps.
func TestSecondStartsComputeTheSameBits(t *testing.T) {
	cfg, err := unet.ParseConfig([]byte(`{"model_type":"SongUNet","img_resolution":8,"img_channels":1,"label_dim":3,
		"model_channels":8,"channel_mult":[1],"num_blocks":1,"attn_resolutions":[],"dropout":0}`))
	if err != nil {
		t.Fatal(err)
	}
	m, err := modelbench.Random(cfg, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, program := range []string{"sample", "step-score"} {
		dir := filepath.Join(t.TempDir(), "programs")
		once := func() (told start) {
			t.Helper()
			var out bytes.Buffer
			open := func() (*device.Device, error) { return device.Open(device.Config{ProgramCache: dir}) }
			if err := Once(t.Context(), open, m, 4, program, kernels.Float32, &out); err != nil {
				t.Fatal(err)
			}
			lines := json.NewDecoder(&out)
			for range 2 {
				if err := lines.Decode(&told); err != nil {
					t.Fatal(err)
				}
			}
			return told
		}
		first, second := once(), once()
		if first.Device == "go" {
			t.Fatal("this test needs an XLA plugin; run `make build`")
		}
		if first.FromDisk || !second.FromDisk {
			t.Errorf("%s: from disk %v at first and %v then", program, first.FromDisk, second.FromDisk)
		}
		if first.Digest == "" || first.Digest != second.Digest {
			t.Errorf("%s: digests %q and %q", program, first.Digest, second.Digest)
		}
	}
}
