package atomicdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrOutside is returned for a symbolic link out of its root.
var ErrOutside = errors.New("the path leads outside its folder")

// Inside returns ErrOutside if a folder of root is, or has, a symbolic link out of root.
func Inside(root, folder string) error {
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	paths := []string{folder}
	for _, entry := range entries {
		paths = append(paths, filepath.Join(folder, entry.Name()))
	}
	for _, path := range paths {
		target, err := filepath.EvalSymlinks(path)
		if err != nil {
			return err
		}
		if rel, err := filepath.Rel(root, target); err != nil || rel == "." || !filepath.IsLocal(rel) {
			return ErrOutside
		}
	}
	return nil
}

// Bytes returns the size of a file, or of the files in a folder; 0 if there are none.
func Bytes(path string) (n int64) {
	_ = filepath.WalkDir(path, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			if info, err := entry.Info(); err == nil {
				n += info.Size()
			}
		}
		return nil
	})
	return n
}
