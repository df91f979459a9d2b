package bench

import (
	"testing"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/kernels"
)

// TestEstimator: the table has every mode, compares with explicit, and a second reverse pass needs more memory than
// none.
func TestEstimator(t *testing.T) {
	o := modelOptions{batch: 16, precision: kernels.Float32, frozen: true}
	b, err := openModel(devicetest.Open(t), random(t, smallest), o)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	r, err := b.measure(t.Context(), estimatorPrograms, 3, func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	memory := map[string]int64{}
	for _, row := range r.Rows {
		memory[row.Program] = row.Memory.Total()
	}
	if r.Rows[0].Ratio != (quartiles{1, 1, 1}) {
		t.Errorf("explicit costs %v of explicit", r.Rows[0].Ratio)
	}
	loss, explicit, full := memory["step-loss"], memory["step-explicit"], memory["step-full"]
	if !(loss < explicit && explicit < full) {
		t.Errorf("memory %v", memory)
	}
}
