package diskcache

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestProgramsComeBackAndOnlyTheirOwn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "programs")
	s := Open(dir, 1<<20, "compiler 1")
	key := s.Key([]byte("text"), []byte("options"))
	if got := s.Get(key); got != nil {
		t.Fatalf("an empty store holds %q", got)
	}
	s.Put(key, []byte("code"))
	if got := Open(dir, 1<<20, "compiler 1").Get(key); string(got) != "code" {
		t.Errorf("got %q", got)
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder's mode is %v, %v; others could put code there", info.Mode(), err)
	}
	for _, other := range []string{
		s.Key([]byte("tex"), []byte("toptions")),
		s.Key([]byte("text"), []byte("options"), nil),
		Open(dir, 1<<20, "compiler 2").Key([]byte("text"), []byte("options")),
		Open(dir, 1<<20, "compiler ", "1").Key([]byte("text"), []byte("options")),
	} {
		if other == key {
			t.Error("two programs have one key")
		}
	}
}

func TestDamagedFilesReadAsAbsentAndAreReplaced(t *testing.T) {
	s := Open(t.TempDir(), 1<<20)
	key := s.Key([]byte("p"))
	s.Put(key, []byte("some code"))
	whole, err := os.ReadFile(s.path(key))
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		flipped := bytes.Clone(whole)
		flipped[i] ^= 1
		for _, damaged := range [][]byte{flipped, whole[:i]} {
			if err := os.WriteFile(s.path(key), damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			if got := s.Get(key); got != nil {
				t.Fatalf("byte %d damaged: got %q", i, got)
			}
		}
	}
	s.Put(key, []byte("some code"))
	if got := s.Get(key); string(got) != "some code" {
		t.Errorf("got %q after the repair", got)
	}
}

func TestTheProgramUsedLongestAgoGoesFirst(t *testing.T) {
	program := make([]byte, 100)
	s := Open(t.TempDir(), int64(3*(header+len(program))))
	keys := make([]string, 4)
	for i := range keys {
		keys[i] = s.Key([]byte{byte(i)})
	}
	for i, key := range keys[:3] {
		s.Put(key, program)
		old := time.Now().Add(time.Duration(i-10) * time.Minute)
		if err := os.Chtimes(s.path(key), old, old); err != nil {
			t.Fatal(err)
		}
	}
	if s.Get(keys[0]) == nil { // which makes it the youngest
		t.Fatal("the first program is gone already")
	}
	s.Put(keys[3], program)
	for i, want := range []bool{true, false, true, true} {
		if got := s.Get(keys[i]) != nil; got != want {
			t.Errorf("program %d kept: %v, want %v", i, got, want)
		}
	}
	s.Put(s.Key([]byte("big")), make([]byte, 1000))
	if s.Get(s.Key([]byte("big"))) != nil || s.Get(keys[3]) == nil {
		t.Error("a program larger than the limit drove others out")
	}
}

func TestAFolderThatCannotBeWrittenOnlyCostsTime(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := Open(file, 1<<20)
	s.Put(s.Key([]byte("p")), []byte("code"))
	if s.Get(s.Key([]byte("p"))) != nil {
		t.Error("a file served as a folder")
	}
}

func TestWhatDeadWritersLeftGoes(t *testing.T) {
	dir := t.TempDir()
	s := Open(dir, 1<<20)
	for name, age := range map[string]time.Duration{
		"new-old": 2 * time.Hour, "new-young": time.Minute,
		"other": 48 * time.Hour,
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("half a program"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, time.Now(), time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	s.Put(s.Key([]byte("p")), []byte("code"))
	for name, want := range map[string]bool{"new-old": false, "new-young": true, "other": true} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", name, err == nil, want)
		}
	}
}
