// Package diskcache keeps compiled programs on disk between processes.
//
// A store is a folder with one file per program, named by the hash of everything that the compiled code depends on:
//
//	KEY    "anisoflight program 1\n" | SHA-256 of the rest, 32 bytes | the executable
//
// A file appears whole or not at all, so processes may share a folder. What is damaged reads as absent and is written
// again. When the files together exceed the limit, those used longest ago go. The cache only saves time: no failure of
// the file system is an error.
//
// Whoever can write to the folder can run code in the processes that read it. It is made for its owner alone.
package diskcache

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	magic  = "anisoflight program 1\n"
	header = len(magic) + sha256.Size
	suffix = ".program"
)

// Store is a folder of compiled programs. It is safe for concurrent use, by several processes too.
type Store struct {
	dir     string
	limit   int64
	context []byte // hash of what all of this store's programs depend on

	mu sync.Mutex // one clean-up at a time
}

// Open returns the store in dir, which need not exist yet, for programs that depend on the context beside their own
// text: the compiler, its flags, the machine. The files may take limit bytes together.
func Open(dir string, limit int64, context ...string) *Store {
	var parts [][]byte
	for _, c := range context {
		parts = append(parts, []byte(c))
	}
	return &Store{dir: dir, limit: limit, context: hash(parts...)}
}

// hash keeps its parts apart, so that no two lists of parts have one hash.
func hash(parts ...[]byte) []byte {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d %s", len(p), p)
	}
	return h.Sum(nil)
}

// Key names the program of these parts, such as its text and its options.
func (s *Store) Key(parts ...[]byte) string {
	return hex.EncodeToString(hash(append([][]byte{s.context}, parts...)...))
}

func (s *Store) path(key string) string { return filepath.Join(s.dir, key+suffix) }

// Get reads a program. Nil means that there is none, or none that is whole.
func (s *Store) Get(key string) []byte {
	file, err := os.ReadFile(s.path(key))
	if err != nil || len(file) <= header || string(file[:len(magic)]) != magic {
		return nil
	}
	body := file[header:]
	if sum := sha256.Sum256(body); !bytes.Equal(sum[:], file[len(magic):header]) {
		return nil
	}
	now := time.Now()
	_ = os.Chtimes(s.path(key), now, now) // the order in which programs go
	return body
}

// Put writes a program. One that is larger than the limit is not kept.
func (s *Store) Put(key string, program []byte) {
	if int64(header+len(program)) > s.limit || os.MkdirAll(s.dir, 0o700) != nil {
		return
	}
	f, err := os.CreateTemp(s.dir, "new-*")
	if err != nil {
		return
	}
	sum := sha256.Sum256(program)
	_, err = f.Write(slices.Concat([]byte(magic), sum[:], program))
	if errors.Join(err, f.Close()) != nil || os.Rename(f.Name(), s.path(key)) != nil {
		_ = os.Remove(f.Name())
		return
	}
	s.trim()
}

// trim removes the programs used longest ago, and what writers left that died an hour ago or longer, until the rest is
// within the limit.
func (s *Store) trim() {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return
	}
	var kept []fs.FileInfo
	var total int64
	for _, e := range entries {
		info, err := e.Info()
		switch {
		case err != nil: // another process was faster
		case strings.HasSuffix(e.Name(), suffix):
			kept = append(kept, info)
			total += info.Size()
		case strings.HasPrefix(e.Name(), "new-") && time.Since(info.ModTime()) > time.Hour:
			_ = os.Remove(filepath.Join(s.dir, e.Name()))
		}
	}
	slices.SortFunc(kept, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, info := range kept {
		if total <= s.limit {
			return
		}
		_ = os.Remove(filepath.Join(s.dir, info.Name()))
		total -= info.Size()
	}
}
