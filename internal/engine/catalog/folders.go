package catalog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// Folders are the places of everything stored:
//
//	DIR/models/NAME/        config.json model.safetensors [schedule.json [basis.safetensors]]
//	DIR/schedules/NAME.schedule/ schedule.json [basis.safetensors]
//	DIR/bases/NAME.basis/        basis.safetensors
//	DIR/datasets/NAME/
//	DIR/runs/NAME/
//
// each folder with a manifest.json beside its files. Older programs have stored schedules/NAME.json and
// bases/NAME.safetensors, and folders without a manifest, which are read, too.
type Folders struct{ Models, Schedules, Bases, Datasets, Runs string }

// FoldersOf returns the places of what is stored in a data folder.
func FoldersOf(dir string) (Folders, error) {
	root, err := filepath.Abs(dir)
	return Folders{
		Models:    filepath.Join(root, "models"),
		Schedules: filepath.Join(root, "schedules"),
		Bases:     filepath.Join(root, "bases"),
		Datasets:  filepath.Join(root, "datasets"),
		Runs:      filepath.Join(root, "runs"),
	}, err
}

func makeFolders(dir string) (Folders, error) {
	f, err := FoldersOf(dir)
	if err != nil {
		return f, err
	}
	for _, d := range f.all() {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return Folders{}, fmt.Errorf("data folder: %w", err)
		}
	}
	return f, nil
}

func (f Folders) all() []string {
	return []string{f.Models, f.Schedules, f.Bases, f.Datasets, f.Runs}
}

// errOutside is the answer to a path that leaves its root.
var errOutside = errors.New("the path leads outside its folder")

// inside resolves path, which is relative to root, and makes sure that neither its words nor symbolic links, of the
// folder or of the files in it, lead out of root.
func inside(root, path string) (string, error) {
	if !filepath.IsLocal(path) {
		return "", errOutside
	}
	realRoot, err := filepath.EvalSymlinks(root)
	if err != nil {
		return "", err
	}
	folder, err := filepath.EvalSymlinks(filepath.Join(realRoot, path))
	if err != nil {
		return "", err
	}
	if !below(realRoot, folder) {
		return "", errOutside
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return "", err
	}
	for _, entry := range entries {
		if entry.Type()&fs.ModeSymlink == 0 {
			continue
		}
		target, err := filepath.EvalSymlinks(filepath.Join(folder, entry.Name()))
		if err != nil {
			return "", err
		}
		if !below(realRoot, target) {
			return "", errOutside
		}
	}
	return folder, nil
}

// below reports whether path lies strictly under root; both are absolute and free of symbolic links.
func below(root, path string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && rel != "." && filepath.IsLocal(rel)
}

// Missing reports whether err says that a file is not there.
func Missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

// exists reports whether there is anything at path.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// StoredNames lists the names of the files in folder that end in suffix, or of the folders in it if suffix is empty.
func StoredNames(folder, suffix string) []string {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	var names []string
	for _, entry := range entries {
		name, ok := strings.CutSuffix(entry.Name(), suffix)
		if suffix == "" && entry.Type().IsRegular() {
			continue
		}
		if ok && api.CheckName("name", name) == nil && CheckReserved(name) == nil {
			names = append(names, name)
		}
	}
	return names
}

// CheckReserved returns an error for the names of built-in schedules and bases, which nothing stored may take.
func CheckReserved(name string) error {
	reserved := append([]string{"edm"}, basis.Names(nil)...)
	if slices.Contains(reserved, name) {
		return api.Errorf(api.BadRequest, "name must not be one of the reserved names %s, got %q",
			strings.Join(reserved, " "), name)
	}
	return nil
}

// withoutPath strips the paths that file errors carry: clients need not know where the server keeps things.
func withoutPath(err error) error {
	if path, ok := errors.AsType[*os.PathError](err); ok {
		return path.Err
	}
	return err
}

// BytesIn returns the bytes of the files in a folder, or of a file, as far as there are any.
func BytesIn(path string) (n int64) {
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
