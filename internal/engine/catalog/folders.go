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
// each folder with a manifest.json beside its files. Folders without one, made by hand, are read, too.
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

// Missing reports whether err says that a file is not there.
func Missing(err error) bool { return errors.Is(err, fs.ErrNotExist) }

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// StoredNames lists the names, without their suffix, of what lies in folder and ends in it. Files are no names.
func StoredNames(folder, suffix string) []string {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	var names []string
	for _, entry := range entries {
		name, ok := strings.CutSuffix(entry.Name(), suffix)
		if ok && !entry.Type().IsRegular() && api.CheckName("name", name) == nil && CheckReserved(name) == nil {
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
