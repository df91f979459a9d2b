package device_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/anisoflight/anisoflight/kernels/device/devicetest"
)

// Threads that the plugin has started take no signals: Go's handlers would run on their stacks. Go's own threads have
// the name of the program, the plugin's have names of their own.
func TestPluginsThreadsTakeNoSignals(t *testing.T) {
	devicetest.Open(t)
	self, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		t.Skip("there is no /proc")
	}
	tasks, err := filepath.Glob("/proc/self/task/*")
	if err != nil {
		t.Fatal(err)
	}
	var seen int
	for _, task := range tasks {
		name, err := os.ReadFile(filepath.Join(task, "comm"))
		if err != nil || string(name) == string(self) {
			continue
		}
		status, err := os.ReadFile(filepath.Join(task, "status"))
		if err != nil {
			continue // it has ended
		}
		_, rest, _ := strings.Cut(string(status), "SigBlk:")
		blocked, err := strconv.ParseUint(strings.Fields(rest)[0], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		seen++
		for _, s := range []syscall.Signal{syscall.SIGPROF, syscall.SIGURG, syscall.SIGTERM} {
			if blocked&(1<<(s-1)) == 0 {
				t.Errorf("thread %s takes signal %q", strings.TrimSpace(string(name)), s)
			}
		}
		if blocked&(1<<(syscall.SIGSEGV-1)) != 0 {
			t.Errorf("thread %s hides its faults", strings.TrimSpace(string(name)))
		}
	}
	if seen == 0 {
		t.Fatalf("none of %d threads is the plugin's", len(tasks))
	}
}
