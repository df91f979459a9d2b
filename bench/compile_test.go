package bench

import (
	"path/filepath"
	"testing"

	"github.com/anisoflight/anisoflight/kernels/device"
)

// A second start reads its programs from disk and computes the same bits: samples, and the whole state after training
// steps.
func TestSecondStartsComputeTheSameBits(t *testing.T) {
	for _, program := range []string{"sample", "step-score"} {
		dir := filepath.Join(t.TempDir(), "programs")
		start := func() (answer processStart) {
			t.Helper()
			flags := modelFlags{network: little, batch: 4, device: device.Config{ProgramCache: dir}}
			_, err := flags.withBench(modelOptions{}, func(b *modelBench) (_ report, err error) {
				answer.Device = b.dev.Name()
				if answer.compiled, err = b.compile(t.Context(), program); err != nil {
					return nil, err
				}
				answer.Digest, err = b.digest(t.Context(), program)
				return nil, err
			})
			if err != nil {
				t.Fatal(err)
			}
			return answer
		}
		first, second := start(), start()
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
