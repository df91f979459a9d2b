//go:build linux && cgo

package device_test

import (
	"errors"
	"io"
	"log/slog"
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

// Every one of these files would kill the process, or worse not, if it were
// simply loaded.
func TestBadPluginIsAnError(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
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
		"a table of null functions": {library(t, at("zerotable.so"),
			"static long api[200] = {1600}; void *GetPjrtApi(void) { return api; }"), "kills the process"},
		"a crash at loading": {library(t, at("crash.so"),
			"__attribute__((constructor)) static void f(void) { *(volatile int *)0 = 1; } "+
				"void *GetPjrtApi(void) { return 0; }"), "kills the process"},
		"an abort with a message": {library(t, at("abort.so"),
			"#include <stdio.h>\n#include <stdlib.h>\nvoid *GetPjrtApi(void) { fputs(\"Fatal: wrong driver\\n\", stderr); "+
				"abort(); }"), "wrong driver"},
		"a missing dependency": {library(t, at("undefined.so"),
			"extern int nowhere; int *p = &nowhere; void *GetPjrtApi(void) { return p; }"), "dynamic loader refuses"},
		"the pinned wheel, cut short": {
			copyHead(t, xla, at("fastatomstruct_xla_cpu/libpjrt_cpu.so"), 8<<20, 8<<20),
			"cut short",
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

// A damaged copy of the pinned plugin is whole as an ELF file, so only its
// checksum tells.
func TestDamagedPinnedPluginIsAnError(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	path := filepath.Join(t.TempDir(), "fastatomstruct_xla_cpu", "libpjrt_cpu.so")
	library(t, path, "void *GetPjrtApi(void) { return 0; }")
	if _, err := device.Open(device.Config{Plugin: path}); err == nil || !strings.Contains(err.Error(), "pip install") {
		t.Errorf("wrong size: error %v, want the command that reinstalls the wheel", err)
	}
	if err := os.Truncate(path, 273768800); err != nil { // the right size, sparse
		t.Fatal(err)
	}
	if _, err := device.Open(device.Config{Plugin: path}); err == nil || !strings.Contains(err.Error(), "checksum") {
		t.Errorf("wrong bytes: error %v, want one about the checksum", err)
	}
}

// A plugin that is not pinned is tried in a child process and then works here.
func TestUnpinnedPluginWorks(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	path := filepath.Join(t.TempDir(), "pjrt_c_api_cpu_plugin.so")
	if err := os.Symlink(xlaPath(t), path); err != nil {
		t.Fatal(err)
	}
	dev := open(t, device.Config{Plugin: path})
	if dev.Name() != "xla:cpu" {
		t.Errorf("opened %s, want xla:cpu", dev.Name())
	}
	if dev.Report().Plugin != path {
		t.Errorf("plugin is %s, want %s", dev.Report().Plugin, path)
	}
	remembered, err := filepath.Glob(filepath.Join(cache, "anisoflight", "plugins", "*"))
	if err != nil || len(remembered) != 1 {
		t.Errorf("%d verdicts remembered (%v), want 1", len(remembered), err)
	}
}

// XLA aborts the process on a flag that it does not know.
func TestUnknownXLAFlagIsAnError(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	path := xlaPath(t)
	t.Setenv("XLA_FLAGS", "--xla_no_such_flag=1")
	_, err := device.Open(device.Config{Plugin: path})
	if err == nil || !strings.Contains(err.Error(), "xla_no_such_flag") {
		t.Errorf("error %v, want one that names the flag", err)
	}
}

// What the search finds but cannot use is passed over; the report says why and
// one warning tells of the slow fallback.
func TestFallback(t *testing.T) {
	project := t.TempDir()
	bad := write(t, filepath.Join(project, ".venv/lib/python3.11/site-packages/fastatomstruct_xla_cpu/libpjrt_cpu.so"),
		"nothing")
	t.Setenv("PATH", "")
	t.Setenv("VIRTUAL_ENV", "")
	t.Setenv("CONDA_PREFIX", "")
	t.Setenv("ANISOFLIGHT_PLUGIN", "")
	t.Setenv("PJRT_PLUGIN_LIBRARY_PATH", "")
	var log strings.Builder
	dev := open(t, device.Config{ProjectDir: project, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if dev.Name() != "go" {
		t.Fatalf("opened %s, want go", dev.Name())
	}
	r := dev.Report()
	if len(r.Candidates) != 1 || r.Candidates[0].Path != bad || r.Candidates[0].Used ||
		!strings.Contains(r.Candidates[0].Reason, "ELF") {
		t.Errorf("candidates %+v, want %s refused as no ELF file", r.Candidates, bad)
	}
	if n := strings.Count(log.String(), "\n"); n != 1 || !strings.Contains(log.String(), "level=WARN") {
		t.Errorf("%d log lines, want one warning:\n%s", n, log.String())
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
