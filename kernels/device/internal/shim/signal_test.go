//go:build linux && cgo

package shim

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// A plugin replaces the handlers of SIGINT and SIGTERM and puts them back, as NVRTC does. Go's stay, with their flags:
// without SA_ONSTACK they would run on the stack of a goroutine, which ends the process.
func TestLibrariesLeaveHandlersOfSignalsAlone(t *testing.T) {
	dir := t.TempDir()
	source, library := filepath.Join(dir, "plugin.c"), filepath.Join(dir, "plugin.so")
	const text = `
#include <signal.h>
#include <stddef.h>
static void ignore(int number) {}
void* GetPjrtApi(void) {
  const int ends[] = {SIGINT, SIGTERM};
  for (int i = 0; i < 2; i++) {
    void (*before)(int) = signal(ends[i], SIG_IGN);
    if (before != SIG_IGN) signal(ends[i], ignore);
    struct sigaction now;
    sigaction(ends[i], NULL, &now);
    if (now.sa_handler == ignore || (now.sa_flags & SA_ONSTACK) == 0) return NULL;
    signal(ends[i], before);
    sigaction(ends[i], NULL, &now);
    if (now.sa_handler != before || (now.sa_flags & SA_ONSTACK) == 0) return NULL;
  }
  static size_t table[1];  // of no size, which is too old
  return table;
}`
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cc", "-shared", "-fPIC", "-o", library, source).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, err := Load(library); err == nil || err.Error() != "its PJRT API is older than 0.83" {
		t.Errorf("Load: %v, want the plugin to find Go's handlers in place", err)
	}
}
