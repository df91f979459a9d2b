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
	"os"
	"path/filepath"
	"syscall"
)

// DamageError says that a file of a folder is not what was written.
type DamageError struct {
	Folder string // its name, such as "digits"
	File   string // such as "model.safetensors"
	Msg    string // such as "is missing"
}

// Error implements the error interface.
func (e *DamageError) Error() string { return e.Folder + "/" + e.File + " " + e.Msg }

// Stored is a committed folder, as its manifest describes it.
type Stored struct {
	dir      string
	manifest *Manifest // nil where there is none
}

// Read calls read with the folder at dir. Where it fails while the folder is being replaced by another, it is called
// again, with that.
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

// Manifest returns the folder's manifest; nil where it has none, so that damage cannot be told.
func (s *Stored) Manifest() *Manifest { return s.manifest }

// Path returns the place of a file.
func (s *Stored) Path(name string) string { return filepath.Join(s.dir, name) }

// ReadFile returns the bytes of a file that are those that were written, else a [*DamageError]. A file that the folder
// was written without is [fs.ErrNotExist].
func (s *Stored) ReadFile(name string) ([]byte, error) {
	want, err := s.entry(name)
	if err != nil {
		return nil, err
	}
	b, err := os.ReadFile(s.Path(name))
	if err != nil {
		return nil, s.unreadable(name, err)
	}
	if s.manifest == nil {
		return b, nil
	}
	return b, want.check(name, int64(len(b)), func() (string, error) { return hashOf(b), nil })
}

// CheckSize compares the size of a file with that which was written, as ReadFile does its bytes.
func (s *Stored) CheckSize(name string) error {
	return s.checkFile(name, func(want Entry, _ *os.File) (string, error) { return want.SHA256, nil })
}

// Check compares the bytes of a file with those that were written, as ReadFile does, without holding them. An end of
// ctx ends it.
func (s *Stored) Check(ctx context.Context, name string) error {
	return s.checkFile(name, func(_ Entry, file *os.File) (string, error) {
		sum := sha256.New()
		_, err := io.Copy(sum, &reader{ctx, file})
		return hex.EncodeToString(sum.Sum(nil)), err
	})
}

// Scan calls use with the bytes of a file as they are read, and returns their SHA-256 in hex. Damage, as ReadFile finds
// it, is the error even if use has failed, too.
func (s *Stored) Scan(name string, use func(r io.Reader, size int64) error) (hash string, err error) {
	want, err := s.entry(name)
	if err != nil {
		return "", err
	}
	file, err := os.Open(s.Path(name))
	if err != nil {
		return "", s.unreadable(name, err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	var failed error
	read := func() (string, error) {
		sum := sha256.New()
		in := io.TeeReader(file, sum)
		failed = use(in, info.Size())
		_, err := io.Copy(io.Discard, in)
		hash = hex.EncodeToString(sum.Sum(nil))
		return hash, err
	}
	if s.manifest == nil {
		_, err = read()
	} else {
		err = want.check(name, info.Size(), read)
	}
	return hash, cmp.Or(s.unreadable(name, err), failed)
}

func (s *Stored) checkFile(name string, sum func(Entry, *os.File) (string, error)) error {
	want, err := s.entry(name)
	if err != nil {
		return err
	}
	file, err := os.Open(s.Path(name))
	if err != nil {
		return s.unreadable(name, err)
	}
	defer file.Close()
	if s.manifest == nil {
		return nil
	}
	info, err := file.Stat()
	if err != nil {
		return err
	}
	err = want.check(name, info.Size(), func() (string, error) { return sum(want, file) })
	return s.unreadable(name, err)
}

// CheckAll checks every file that the folder was written with, and returns what is wrong with each. There is nothing to
// check without a manifest.
func (s *Stored) CheckAll(ctx context.Context) (faults []error) {
	if s.manifest == nil {
		return nil
	}
	for _, name := range s.manifest.Names() {
		if err := s.Check(ctx, name); err != nil {
			faults = append(faults, err)
		}
	}
	return faults
}

// entry returns what the manifest says of a file: nothing where there is no manifest.
func (s *Stored) entry(name string) (Entry, error) {
	if s.manifest == nil {
		return Entry{}, nil
	}
	e, ok := s.manifest.Entry(name)
	if ok {
		return e, nil
	}
	if _, err := os.Lstat(s.Path(name)); err == nil {
		return e, &DamageError{File: name, Msg: "was not there when the folder was written"}
	}
	return e, &fs.PathError{Op: "open", Path: s.Path(name), Err: fs.ErrNotExist}
}

// unreadable names a file that was written and is gone, or that the disk no longer gives.
func (s *Stored) unreadable(name string, err error) error {
	switch {
	case errors.Is(err, syscall.EIO):
		return &DamageError{File: name, Msg: "cannot be read: " + syscall.EIO.Error()}
	case s.manifest != nil && errors.Is(err, fs.ErrNotExist):
		return &DamageError{File: name, Msg: "is missing"}
	}
	return err
}

// check compares a file's size, and then its hash.
func (e Entry) check(name string, size int64, sum func() (string, error)) error {
	if size != e.Size {
		return &DamageError{File: name, Msg: fmt.Sprintf("has %d bytes and was written with %d", size, e.Size)}
	}
	got, err := sum()
	if err == nil && got != e.SHA256 {
		err = &DamageError{File: name, Msg: "is not what was written: its SHA-256 has changed"}
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
