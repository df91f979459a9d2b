package bench

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/kernels/device"
)

// Lower writes a network's evaluation and its step, and the step takes over the state that it is given.
func TestLower(t *testing.T) {
	folder := t.TempDir()
	args := []string{
		"lower", folder, "--network", smallest, "--batch", "2", "--precision", "tf32", "--programs",
		"sample,step-score",
	}
	var out, errs bytes.Buffer
	if status := Main(args, nil, &out, &errs); status != 0 {
		t.Fatalf("status %d: %s", status, errs.String())
	}
	var counts struct {
		Key    string
		FLOPs  int64
		Memory device.Memory
	}
	for _, c := range []struct{ name, key string }{{"sample", "evaluate 2|"}, {"step-score", "step "}} {
		text, err := os.ReadFile(filepath.Join(folder, c.name+".mlir"))
		if err != nil || !strings.HasPrefix(string(text), "module @tf32 ") {
			t.Errorf("%s: text %.40s, error %v", c.name, text, err)
		}
		raw, err := os.ReadFile(filepath.Join(folder, c.name+".json"))
		if err == nil {
			err = json.Unmarshal(raw, &counts)
		}
		if err != nil || counts.FLOPs == 0 || !strings.HasPrefix(counts.Key, c.key) {
			t.Errorf("%s: %+v, error %v", c.name, counts, err)
		}
	}
	if counts.Memory.Aliased == 0 {
		t.Errorf("the step takes over nothing: %+v", counts.Memory)
	}
}
