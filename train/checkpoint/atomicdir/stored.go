package atomicdir

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// DamageError is returned for a file of a folder that is not what was written.
type DamageError struct {
	Folder string // its name, such as "digits"
	File   string // such as "model.safetensors"
	Msg    string // such as "is missing"
}

// Error implements the error interface.
func (e *DamageError) Error() string { return e.Folder + "/" + e.File + " " + e.Msg }

// Stored is a committed folder with its manifest.
type Stored struct {
	dir      string
	manifest Manifest // nil where there is none
}

// Read calls read with the folder at dir. If read fails because the folder is replaced meanwhile, Read calls it again.
func Read(dir string, read func(*Stored) error) error {
	for {
		before, err := os.Stat(dir)
		if err != nil {
			return err
		}
		err = readOnce(dir, read)
		if err == nil {
			return nil
		}
		after, gone := os.Stat(dir)
		if gone != nil || os.SameFile(before, after) && before.ModTime().Equal(after.ModTime()) {
			return err
		}
	}
}

func readOnce(dir string, read func(*Stored) error) error {
	m, err := readManifest(dir)
	if err == nil {
		err = read(&Stored{dir, m})
	}
	var damage *DamageError
	if errors.As(err, &damage) && damage.Folder == "" {
		damage.Folder = filepath.Base(dir)
	}
	return err
}

// HasManifest reports whether the folder has a manifest.
func (s *Stored) HasManifest() bool { return s.manifest != nil }

// Hash returns the SHA-256, in hex, that a file was written with; empty if the folder has no manifest.
func (s *Stored) Hash(name string) string { return s.manifest[name].SHA256 }

// Path returns the place of a file.
func (s *Stored) Path(name string) string { return filepath.Join(s.dir, name) }

// ReadFile returns the bytes of a file, or a [*DamageError] if they are not what was written. A file that was not
// written is [fs.ErrNotExist].
func (s *Stored) ReadFile(name string) (b []byte, err error) {
	_, err = s.Scan(name, func(r io.Reader, size int64) error {
		b = make([]byte, size)
		_, err := io.ReadFull(r, b)
		return err
	})
	return b, err
}

// CheckSize is ReadFile for the size of a file alone.
func (s *Stored) CheckSize(name string) error {
	file, _, err := s.open(name)
	if err == nil {
		err = file.Close()
	}
	return err
}

// Sum is ReadFile without holding the bytes. It returns the SHA-256 of the file, in hex.
func (s *Stored) Sum(ctx context.Context, name string) (string, error) {
	return s.scan(ctx, name, func(io.Reader, int64) error { return nil })
}

// CheckAll checks every file of the manifest, and returns all errors.
func (s *Stored) CheckAll(ctx context.Context) (faults []error) {
	for _, name := range slices.Sorted(maps.Keys(s.manifest)) {
		if _, err := s.Sum(ctx, name); err != nil {
			faults = append(faults, err)
		}
	}
	return faults
}

// Scan calls use with the bytes of a file as they are read, and returns their SHA-256 in hex. A [*DamageError] takes
// precedence over an error of use.
func (s *Stored) Scan(name string, use func(r io.Reader, size int64) error) (hash string, err error) {
	return s.scan(context.Background(), name, use)
}

func (s *Stored) scan(ctx context.Context, name string, use func(r io.Reader, size int64) error) (string, error) {
	file, size, err := s.open(name)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	in := io.TeeReader(&reader{ctx, file}, sum)
	failed := use(in, size)
	_, err = io.Copy(io.Discard, in)
	hash := hex.EncodeToString(sum.Sum(nil))
	if err == nil && s.manifest != nil && hash != s.Hash(name) {
		err = &DamageError{File: name, Msg: "is not what was written: its SHA-256 has changed"}
	}
	return hash, cmp.Or(s.unreadable(name, err), failed)
}

// open opens a file and checks its size.
func (s *Stored) open(name string) (*os.File, int64, error) {
	want, err := s.entry(name)
	if err != nil {
		return nil, 0, err
	}
	file, err := os.Open(s.Path(name))
	if err != nil {
		return nil, 0, s.unreadable(name, err)
	}
	info, err := file.Stat()
	if err == nil && s.manifest != nil && info.Size() != want.Size {
		err = &DamageError{File: name, Msg: fmt.Sprintf("has %d bytes and was written with %d", info.Size(), want.Size)}
	}
	if err != nil {
		_ = file.Close()
		return nil, 0, err
	}
	return file, info.Size(), nil
}

// entry returns the entry of a file, which is empty without a manifest.
func (s *Stored) entry(name string) (Entry, error) {
	if s.manifest == nil {
		return Entry{}, nil
	}
	e, ok := s.manifest[name]
	if ok {
		return e, nil
	}
	if _, err := os.Lstat(s.Path(name)); err == nil {
		return e, &DamageError{File: name, Msg: "was not there when the folder was written"}
	}
	return e, &fs.PathError{Op: "open", Path: s.Path(name), Err: fs.ErrNotExist}
}

// unreadable returns a [*DamageError] if a file of the manifest is missing or the disk cannot read it, else err.
func (s *Stored) unreadable(name string, err error) error {
	switch {
	case errors.Is(err, syscall.EIO):
		return &DamageError{File: name, Msg: "cannot be read: " + syscall.EIO.Error()}
	case s.manifest != nil && errors.Is(err, fs.ErrNotExist):
		return &DamageError{File: name, Msg: "is missing"}
	}
	return err
}

// reader reads until ctx ends.
type reader struct {
	ctx context.Context
	io.Reader
}

func (r *reader) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(b)
}
