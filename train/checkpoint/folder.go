package checkpoint

import (
	"errors"
	"io/fs"
	"path/filepath"

	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
)

// part is a file of a folder, and what reads it.
type part struct {
	name     string
	optional bool
	decode   func([]byte) error
}

// readParts reads files in their order, and stops at the first that cannot be used.
func readParts(folder *atomicdir.Stored, parts []part) error {
	for _, f := range parts {
		if err := f.read(folder); err != nil {
			return err
		}
	}
	return nil
}

func (f part) read(folder *atomicdir.Stored) error {
	b, err := folder.ReadFile(f.name)
	if f.optional && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = f.decode(b)
	}
	return inFile(f.name, withoutPath(err))
}

// readFolder returns what read makes of the folder dir. Its errors are *[Error].
func readFolder[T any](dir string, read func(*atomicdir.Stored) (T, error)) (T, error) {
	var out T
	err := atomicdir.Read(dir, func(folder *atomicdir.Stored) (err error) {
		out, err = read(folder)
		return err
	})
	if err != nil {
		var none T
		return none, inFile(filepath.Base(dir), withoutPath(err))
	}
	return out, nil
}

// withoutPath strips the path that a file error carries: the folder's place is the
// caller's business.
func withoutPath(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// writeFolder writes a folder of these files.
func writeFolder(dir string, files map[string][]byte, replace bool) error {
	return atomicdir.Write(dir, replace, func(f *atomicdir.Folder) error { return fill(f, files) })
}

// fill writes files in a folder.
func fill(f *atomicdir.Folder, files map[string][]byte) error {
	for name, b := range files {
		if err := f.WriteFile(name, b); err != nil {
			return err
		}
	}
	return nil
}
