//go:build linux && cgo

package device_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// library compiles C source into a shared library at path, which needs others.
func library(t *testing.T, path, source string, others ...string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-shared", "-fPIC", "-Wl,--no-as-needed", "-o", path, "-x", "c", "-", "-x", "none"}, others...)
	cmd := exec.Command("cc", args...)
	cmd.Stdin = strings.NewReader(source)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("cc: %v\n%s", err, out)
	}
	return path
}

func write(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// Many of these files would kill the process, or worse not, if they were simply loaded.
func TestBadPluginIsAnError(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	xla, err := os.Open(devicetest.Open(t).Report().Plugin)
	if err != nil {
		t.Fatal(err)
	}
	defer xla.Close()
	head := make([]byte, 8<<20)
	if _, err := io.ReadFull(xla, head); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ path, says string }{
		"missing":   {at("missing.so"), "no such file"},
		"a folder":  {dir, "not a regular file"},
		"text":      {write(t, at("text.so"), "#!/bin/sh\necho no plugin\n"), "not an ELF"},
		"cut short": {write(t, at("short.so"), string(head)), "cut short"},
		"another library": {
			library(t, at("other.so"), "int f(void) { return 1; }"), "does not export GetPjrtApi",
		},
		"a variable":   {library(t, at("variable.so"), "int GetPjrtApi = 1;"), "does not export GetPjrtApi"},
		"a null table": {library(t, at("null.so"), "void *GetPjrtApi(void) { return 0; }"), "null pointer"},
		"an old table": {
			library(t, at("old.so"), "static long api[8] = {64}; void *GetPjrtApi(void) { return api; }"), "older",
		},
		"a missing dependency": {library(t, at("undefined.so"),
			"extern int nowhere; int *p = &nowhere; void *GetPjrtApi(void) { return p; }"), "dynamic loader refuses"},
	} {
		t.Run(name, func(t *testing.T) {
			dev, err := device.Open(device.Config{Plugin: c.path})
			var pe *device.PluginError
			if !errors.As(err, &pe) {
				t.Fatalf("got device %v and error %v, want a PluginError", dev, err)
			}
			if !strings.Contains(err.Error(), c.says) || pe.Path != c.path || pe.Source != "configuration" {
				t.Errorf("error %q, want one that says %q", err, c.says)
			}
		})
	}
}

func TestEnvironmentNamesThePlugin(t *testing.T) {
	xla := devicetest.Several(t)[0].Report().Plugin // of the host
	t.Setenv("ANISOFLIGHT_PLUGIN", filepath.Join(t.TempDir(), "gone.so"))
	_, err := device.Open(device.Config{})
	var pe *device.PluginError
	if !errors.As(err, &pe) || pe.Source != "ANISOFLIGHT_PLUGIN" {
		t.Errorf("error %v, want a PluginError from ANISOFLIGHT_PLUGIN", err)
	}
	// A kind narrows the choice down, and does not replace it.
	for kind, want := range map[string]string{"cpu": "no such file", "cuda": "the device is set to cuda"} {
		if _, err := device.Open(device.Config{Plugin: kind}); !errors.As(err, &pe) || pe.Source != "ANISOFLIGHT_PLUGIN" ||
			!strings.Contains(pe.Reason, want) {
			t.Errorf("device %s: error %v, want one that says %q", kind, err, want)
		}
	}
	named := filepath.Join(t.TempDir(), "libpjrt_cpu.so")
	if err := os.Symlink(xla, named); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ANISOFLIGHT_PLUGIN", named)
	if r := open(t, device.Config{Plugin: "cpu"}).Report(); r.Plugin != named {
		t.Errorf("device cpu took %s", r.Plugin)
	}
	if name := open(t, device.Config{Plugin: "go"}).Name(); name != "go" {
		t.Errorf("device go opened %s", name)
	}
	t.Setenv("ANISOFLIGHT_PLUGIN", "go")
	if name := open(t, device.Config{}).Name(); name != "go" {
		t.Errorf("ANISOFLIGHT_PLUGIN=go opened %s", name)
	}
}
