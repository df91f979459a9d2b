package mpi

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestCandidates: the library beside mpiexec comes before that of the environment, and both before the loader's.
func TestCandidates(t *testing.T) {
	dir := t.TempDir()
	place := func(name string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	mpiexec := place("mpich/bin/mpiexec", 0o755)
	want := []string{place("mpich/lib/libmpi_abi.so.1", 0o644), place("venv/lib/libmpi_abi.so", 0o644)}
	t.Setenv("PATH", filepath.Dir(mpiexec))
	t.Setenv("VIRTUAL_ENV", filepath.Join(dir, "venv"))
	t.Setenv("CONDA_PREFIX", "")
	if got := candidates(); !slices.Equal(got, append(want, libraries...)) {
		t.Errorf("%v", got)
	}
}

// TestLaunched: by several launchers, of more than one process.
func TestLaunched(t *testing.T) {
	for _, name := range sizes {
		t.Setenv(name, "")
	}
	if Launched() {
		t.Error("nobody has")
	}
	for _, name := range sizes {
		t.Setenv(name, "1")
		if Launched() {
			t.Errorf("%s: one process", name)
		}
		t.Setenv(name, "2")
		if !Launched() {
			t.Errorf("%s: two processes", name)
		}
		t.Setenv(name, "")
	}
}

// TestOpenRefuses what is no MPI, or another one's, and says what to install.
func TestOpenRefuses(t *testing.T) {
	none := filepath.Join(t.TempDir(), "libmpi_abi.so")
	for path, want := range map[string]string{
		none:          "cannot open shared object file",
		"libc.so.6":   "it is no libmpi_abi.so",
		"libdl.so.2":  "it is no libmpi_abi.so",
		"/etc/passwd": "invalid ELF header",
	} {
		_, err := Open(path)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "pip install mpich") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
