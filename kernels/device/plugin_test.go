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

	"github.com/anisoflight/anisoflight/internal/devicetest"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// library compiles C source into a shared library at path.
func library(t *testing.T, path, source string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("cc", "-shared", "-fPIC", "-x", "c", "-", "-o", path)
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

// xlaPath is the real plugin of this checkout.
func xlaPath(t *testing.T) string {
	t.Helper()
	path := devicetest.Open(t).Report().Plugin
	if path == "" {
		t.Fatal("no PJRT plugin; run `make build` first")
	}
	return path
}

// copyHead copies the first n bytes of a file and then stretches it to size.
func copyHead(t *testing.T, from, to string, n, size int64) string {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	write(t, to, "")
	out, err := os.OpenFile(to, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if _, err := io.CopyN(out, in, n); err != nil {
		t.Fatal(err)
	}
	if err := out.Truncate(size); err != nil {
		t.Fatal(err)
	}
	return to
}

// Many of these files would kill the process, or worse not, if they were simply loaded.
func TestBadPluginIsAnError(t *testing.T) {
	dir, xla := t.TempDir(), xlaPath(t)
	info, err := os.Stat(xla)
	if err != nil {
		t.Fatal(err)
	}
	at := func(name string) string { return filepath.Join(dir, name) }
	for name, c := range map[string]struct{ path, says string }{
		"missing":       {at("missing.so"), "no such file"},
		"a folder":      {dir, "not a regular file"},
		"text":          {write(t, at("text.so"), "#!/bin/sh\necho no plugin\n"), "not an ELF"},
		"empty":         {write(t, at("empty.so"), ""), "not an ELF"},
		"an ELF magic":  {write(t, at("magic.so"), "\x7fELF\x02\x01\x01"), "ELF"},
		"cut short":     {copyHead(t, xla, at("short.so"), 8<<20, 8<<20), "cut short"},
		"zeros inside":  {copyHead(t, xla, at("zeros.so"), 8<<20, info.Size()), "not a usable shared library"},
		"an executable": {func() string { exe, _ := os.Executable(); return exe }(), "not"},
		"another library": {
			library(t, at("other.so"), "int f(void) { return 1; }"),
			"does not export GetPjrtApi",
		},
		"a variable":   {library(t, at("variable.so"), "int GetPjrtApi = 1;"), "does not export GetPjrtApi"},
		"a null table": {library(t, at("null.so"), "void *GetPjrtApi(void) { return 0; }"), "null pointer"},
		"an old table": {library(t, at("old.so"),
			"static long api[8] = {64}; void *GetPjrtApi(void) { return api; }"), "older"},
		"a missing dependency": {library(t, at("undefined.so"),
			"extern int nowhere; int *p = &nowhere; void *GetPjrtApi(void) { return p; }"), "dynamic loader refuses"},
		"another file in the place of the pinned one": {
			library(t, at("fastatomstruct_xla_cpu/libpjrt_cpu.so"), "void *GetPjrtApi(void) { return 0; }"),
			"pip install",
		},
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
	t.Setenv("ANISOFLIGHT_PLUGIN", filepath.Join(t.TempDir(), "gone.so"))
	_, err := device.Open(device.Config{})
	var pe *device.PluginError
	if !errors.As(err, &pe) || pe.Source != "ANISOFLIGHT_PLUGIN" {
		t.Errorf("error %v, want a PluginError from ANISOFLIGHT_PLUGIN", err)
	}
	t.Setenv("ANISOFLIGHT_PLUGIN", "go")
	if name := open(t, device.Config{}).Name(); name != "go" {
		t.Errorf("ANISOFLIGHT_PLUGIN=go opened %s", name)
	}
}
