package connect

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The folder of a process that was killed goes with the next; those that are held, fresh, or no such folders stay.
func TestTemporaryFoldersOfTheKilled(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	mine, release, err := temporary("test")
	if err != nil {
		t.Fatal(err)
	}
	makes := func(name string, files ...string) string {
		dir := filepath.Join(temp, name)
		if err := os.MkdirAll(filepath.Join(dir, "data"), 0o700); err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if err := os.WriteFile(filepath.Join(dir, file), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	killed, fresh, other := makes("anisoflight-killed", "lock"), makes("anisoflight-fresh", "lock"), makes("anisoflight-x")
	data, link := makes("data", "lock"), filepath.Join(temp, "anisoflight-link")
	if err := os.Symlink(data, link); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{mine, killed, other, data} {
		if err := os.Chtimes(dir, time.Time{}, time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
	}
	next, releaseNext, err := temporary("test")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(killed); err == nil {
		t.Error("the folder of a killed process is there")
	}
	for _, dir := range []string{mine, fresh, other, filepath.Join(data, "data"), next} {
		if _, err := os.Stat(dir); err != nil {
			t.Error(err)
		}
	}
	for _, end := range []func() error{release, releaseNext} {
		if err := end(); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(mine); err == nil {
		t.Error("a folder is there after its end")
	}
}
