package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// interpreter writes a script that stands for a Python interpreter.
func interpreter(t *testing.T, script string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "python")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPythonMustHaveThePackage(t *testing.T) {
	t.Setenv("ANISOFLIGHT_PYTHON", interpreter(t, "exit 1"))
	_, err := findPython(t.Context())
	if err == nil ||
		!strings.Contains(err.Error(), "does not have the package anisoflight; install it with `pip install") {
		t.Errorf("says %v", err)
	}
	t.Setenv("ANISOFLIGHT_PYTHON", filepath.Join(t.TempDir(), "none"))
	if _, err := findPython(t.Context()); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("says %v", err)
	}
}
