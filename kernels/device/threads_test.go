package device_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/kernels/device"
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

// XLA for CPU has as many threads as Go, of which there are as many as processors: with four on two processors sampling
// of small images took 1.2 times as long. NPROC decides where it is set, and no device is without a thread.
func TestAsManyThreadsAsProcessors(t *testing.T) {
	devicetest.Several(t) // or the test is skipped; verified before, so that nothing else starts threads
	for _, c := range []struct {
		goes    int
		nproc   string
		devices string
		want    int
	}{{2, "", "", 2}, {1, "", "", 1}, {3, "", "2", 3}, {1, "", "3", 3}, {2, "5", "", 5}, {3, "many", "", 3}} {
		t.Setenv("NPROC", c.nproc)
		before := runtime.GOMAXPROCS(c.goes)
		already := poolThreads(t)
		open(t, device.Config{Plugin: "cpu", Devices: c.devices})
		if got := poolThreads(t) - already; got != c.want {
			t.Errorf("%+v: %d threads", c, got)
		}
		runtime.GOMAXPROCS(before)
		if got := os.Getenv("NPROC"); got != c.nproc {
			t.Errorf("%+v: NPROC is %q afterwards", c, got)
		}
	}
}

// poolThreads counts the threads of XLA's pools for the work of a program.
func poolThreads(t *testing.T) (n int) {
	t.Helper()
	tasks, err := filepath.Glob("/proc/self/task/*/comm")
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		if name, err := os.ReadFile(task); err == nil && strings.TrimSpace(string(name)) == "tf_XLAEigen" {
			n++
		}
	}
	if len(tasks) == 0 {
		t.Skip("there is no /proc")
	}
	return n
}
