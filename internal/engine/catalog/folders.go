package catalog

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// Folders are the folders of a data folder:
//
//	DIR/models/NAME/        config.json model.safetensors [schedule.json [basis.safetensors]]
//	DIR/schedules/NAME.schedule/ schedule.json [basis.safetensors] [start.safetensors]
//	DIR/plans/NAME.plan/         plan.json [basis.safetensors] [start.safetensors]
//	DIR/bases/NAME.basis/        basis.safetensors
//	DIR/datasets/NAME/
//	DIR/runs/NAME/
//
// Each folder has a manifest.json next to its files. A folder without one, such as one made by hand, is also read.
type Folders struct{ Models, Schedules, Plans, Bases, Datasets, Runs string }

// FoldersOf returns the folders of a data folder.
func FoldersOf(dir string) (Folders, error) {
	root, err := filepath.Abs(dir)
	return Folders{
		Models:    filepath.Join(root, "models"),
		Schedules: filepath.Join(root, "schedules"),
		Plans:     filepath.Join(root, "plans"),
		Bases:     filepath.Join(root, "bases"),
		Datasets:  filepath.Join(root, "datasets"),
		Runs:      filepath.Join(root, "runs"),
	}, err
}

func (f Folders) all() []string {
	return []string{f.Models, f.Schedules, f.Plans, f.Bases, f.Datasets, f.Runs}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// StoredNames lists the names of the folders in a folder that end in suffix, without it.
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

// CheckReserved refuses the names of built-in schedules and bases.
func CheckReserved(name string) error {
	reserved := append([]string{"edm"}, basis.Names(nil)...)
	if slices.Contains(reserved, name) {
		return api.Errorf(api.BadRequest, "name must not be one of the reserved names %s, got %q",
			strings.Join(reserved, " "), name)
	}
	return nil
}

// withoutPath removes the path from a file error: clients need not know where the server stores things.
func withoutPath(err error) error {
	if path, ok := errors.AsType[*os.PathError](err); ok {
		return path.Err
	}
	return err
}
