package bench

import (
	"os"
	"strings"
	"testing"
)

// TestMain runs the command if a benchmark has started this executable again.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		os.Exit(Main(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// TestMemoryOfAProcess: what a process says of its memory arrives, and an order that fails is an error.
func TestMemoryOfAProcess(t *testing.T) {
	args := []string{"model", "--drive", "--network", smallest, "--batch", "2", "--device", "go"}
	r, err := measureMemory(t.Context(), args, []string{"forward"}, 2, func(int, int) {})
	if err != nil || len(r.Rows) != 1 || r.Batch != 2 {
		t.Fatalf("%+v, %v", r, err)
	}
	if row := r.Rows[0]; row.Program != "forward" || !(row.Wall.Median > 0) || row.Running < 1<<20 {
		t.Errorf("%+v", row)
	}
	_, err = measureMemory(t.Context(), args, []string{"backward"}, 1, func(int, int) {})
	if err == nil || !strings.Contains(err.Error(), `got "backward"`) {
		t.Errorf("%v", err)
	}
}
