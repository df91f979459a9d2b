// Package diskcache keeps compiled programs on disk between processes.
//
// A store is a folder with one file per program, named by the hash of everything that the compiled code depends on:
//
//	KEY    "anisoflight program 1\n" | SHA-256 of the rest, 32 bytes | the executable
//
// Files are written atomically, so processes may share a folder. A damaged file counts as absent and is written again.
// If all files together exceed the limit, the least recently used are removed. A failure of the file system is no
// error.
//
// Anyone who can write to the folder can run code in the processes that read it. It is created for its owner alone.
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
	context []byte // hash of Open's context

	mu sync.Mutex // held by trim
}

// Open returns the store in dir, which need not exist. context names everything that programs depend on except their
// text: the compiler, its flags, the machine. All files together take at most limit bytes.
func Open(dir string, limit int64, context ...string) *Store {
	var parts [][]byte
	for _, c := range context {
		parts = append(parts, []byte(c))
	}
	return &Store{dir: dir, limit: limit, context: hash(parts...)}
}

// hash hashes a list of parts with their lengths, so that different lists have different hashes.
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

// Get returns a program, or nil if it is absent or damaged.
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
	_ = os.Chtimes(s.path(key), now, now) // trim removes the oldest
	return body
}

// Put writes a program, unless it is larger than the limit.
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

// trim removes the least recently used programs until the rest is within the limit, and temporary files older than an
// hour.
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
