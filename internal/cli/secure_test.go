package cli

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestServeRefusesToBeExposed: addresses that others reach need TLS, and files that do not hold what they should are
// mistakes at the start.
func TestServeRefusesToBeExposed(t *testing.T) {
	dir := t.TempDir()
	rubbish := filepath.Join(dir, "rubbish")
	if err := os.WriteFile(rubbish, []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	for says, args := range map[string][]string{
		"needs TLS":                 {"--listen", "0.0.0.0:0"},
		"TLS needs a certificate":   {"--client-ca", rubbish},
		"auth: certificate":         {"--tls-cert", rubbish, "--tls-key", rubbish},
		"rubbish: line 1":           {"--tokens", rubbish},
		"no such file or directory": {"--tokens", rubbish + "2"},
	} {
		fails(t, 1, says, append([]string{"serve", "--data", dir, "--device", "go", "--log-level", "error"}, args...)...)
	}
}

// TestServeTellsMetrics: Prometheus finds calls, the engine's counters and the process's, on loopback alone.
func TestServeTellsMetrics(t *testing.T) {
	dir := t.TempDir()
	s := startServer(t, dir, "--metrics", "127.0.0.1:0")
	reply, err := http.Get("http://" + s.log.await(t, "metrics on ") + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"anisoflight_calls_active ", "anisoflight_device_turns_total 0",
		"anisoflight_compiled_total", "go_goroutines", "process_resident_memory_bytes",
	} {
		if !strings.Contains(string(text), "\n"+name) {
			t.Errorf("there is no %s in\n%s", name, text)
		}
	}
	s.stop()
	fails(t, 1, "loopback", "serve", "--metrics", "0.0.0.0:0", "--listen", "127.0.0.1:0", "--data", dir, "--device", "go",
		"--log-level", "error")
}
