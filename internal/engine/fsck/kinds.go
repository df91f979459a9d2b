package fsck

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
	"github.com/anisoflight/anisoflight/train/data"
)

// faultsOf makes a list of an error.
func faultsOf(err error) []error {
	if err == nil {
		return nil
	}
	return []error{err}
}

// models checks a folder of model folders, which may lie deeper.
func (c *checker) models(folder string) error {
	return c.each(folder, func(path string, entry fs.DirEntry) error {
		switch {
		case entry.Type()&fs.ModeSymlink != 0: // what it leads to lies below the models folder, too
			return nil
		case !entry.IsDir():
			return nil
		case !holdsFiles(path):
			return c.models(path)
		}
		return c.report(path, func(dir string) []error {
			_, faults := checkpoint.CheckModel(dir)
			return faults
		})
	})
}

// holdsFiles reports whether a folder is more than a folder of folders.
func holdsFiles(path string) bool {
	entries, err := os.ReadDir(path)
	return err != nil || len(entries) == 0 || slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return !e.IsDir() })
}

// schedules checks the stored schedules.
func (c *checker) schedules(folder string) error {
	return c.each(folder, func(path string, entry fs.DirEntry) error {
		if name, ok := strings.CutSuffix(path, catalog.ScheduleFileSuffix); ok && !entry.IsDir() {
			return c.file(path, name+catalog.ScheduleFolderSuffix, func(text []byte, folder string) error {
				s, err := checkpoint.DecodeSchedule(text)
				if err == nil && folder != "" {
					err = checkpoint.SaveSchedule(folder, checkpoint.Schedule{Schedule: s})
				}
				return err
			})
		}
		return c.report(path, func(dir string) []error {
			_, err := checkpoint.LoadSchedule(dir)
			return faultsOf(err)
		})
	})
}

// bases checks the stored bases.
func (c *checker) bases(folder string) error {
	return c.each(folder, func(path string, entry fs.DirEntry) error {
		if name, ok := strings.CutSuffix(path, catalog.BasisFileSuffix); ok && !entry.IsDir() {
			return c.file(path, name+catalog.BasisFolderSuffix, func(file []byte, folder string) error {
				b, err := checkpoint.DecodeBasis(file)
				if err == nil && folder != "" {
					err = checkpoint.SaveBasis(folder, b, true)
				}
				return err
			})
		}
		return c.report(path, func(dir string) []error {
			_, err := checkpoint.LoadBasis(dir)
			return faultsOf(err)
		})
	})
}

// file checks what an older program has stored as a file, and makes the folder of it that it would be today: keep
// decodes it, and stores it as the folder that it is given, if it is given one.
func (c *checker) file(path, folder string, keep func(file []byte, folder string) error) error {
	if _, err := os.Lstat(folder); err == nil {
		return nil // a crash has left the file, and the folder counts
	}
	f := Finding{Path: c.below(path), State: Unverified, Bytes: bytesIn(path)}
	file, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) { // it went away meanwhile
		return nil
	}
	if err == nil {
		err = keep(file, "")
	}
	if err != nil {
		f.State, f.Faults = Damaged, []string{said(err)}
		c.found(f)
		return nil
	}
	if c.repair {
		if err := errors.Join(keep(file, folder), atomicdir.Remove(path)); err != nil {
			return err
		}
		f.State, f.Repaired = OK, "stored as "+filepath.Base(folder)+" with a manifest"
	}
	c.found(f)
	return nil
}

// datasets checks the stored data sets.
func (c *checker) datasets(folder string) error {
	return c.each(folder, func(path string, entry fs.DirEntry) error {
		if !entry.IsDir() {
			return nil
		}
		return c.report(path, func(dir string) []error {
			d, err := data.Load(dir)
			if err == nil {
				err = d.Check(c.ctx)
			}
			return faultsOf(err)
		})
	})
}
