package fsck

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
)

// State is what was found of something stored.
type State string

// The states.
const (
	OK         State = "ok"         // every byte is what was written
	Unverified State = "unverified" // it can be used, and was written without a manifest
	Damaged    State = "damaged"    // it cannot be used, or is not what was written
	Leftover   State = "leftover"   // a crash has left it, and nothing needs it
)

// Finding is what was found at one place.
type Finding struct {
	Path     string   `json:"path"` // below the data folder
	State    State    `json:"state"`
	Faults   []string `json:"faults,omitempty"`   // what is wrong, by file
	Bytes    int64    `json:"bytes"`              // in its files
	Repaired string   `json:"repaired,omitempty"` // what was done about it; the state is that after it
}

// checker checks one data folder.
type checker struct {
	ctx    context.Context
	root   string
	repair bool
	found  func(Finding)
}

// Check calls found with what lies in the data folder dir, place by place, and repairs what it can if repair is true;
// the caller then holds the folder's lock. An error is one of reading the folder itself, or the end of ctx.
func Check(ctx context.Context, dir string, repair bool, found func(Finding)) error {
	folders, err := catalog.FoldersOf(dir)
	if err != nil {
		return err
	}
	c := &checker{ctx: ctx, root: filepath.Dir(folders.Models), repair: repair, found: found}
	for _, kind := range []struct {
		folder string
		check  func(folder string) error
	}{
		{folders.Models, c.models},
		{folders.Schedules, c.schedules},
		{folders.Bases, c.bases},
		{folders.Datasets, c.datasets},
		{folders.Runs, c.runs},
	} {
		if err := kind.check(kind.folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return ctx.Err()
}

// each calls check with the entries of a folder, after its leftovers.
func (c *checker) each(folder string, check func(path string, entry fs.DirEntry) error) error {
	if err := c.leftovers(folder); err != nil {
		return err
	}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		if isHidden(entry.Name()) {
			continue
		}
		if err := check(filepath.Join(folder, entry.Name()), entry); err != nil {
			return err
		}
	}
	return nil
}

// leftovers reports what crashes have left in a folder, and removes it.
func (c *checker) leftovers(folder string) error {
	left, err := atomicdir.Leftovers(folder)
	if err != nil {
		return err
	}
	for _, path := range left {
		f := Finding{Path: c.below(path), State: Leftover, Bytes: bytesIn(path)}
		if c.repair {
			f.Repaired = "removed"
		}
		c.found(f)
	}
	if c.repair {
		return atomicdir.Sweep(folder)
	}
	return nil
}

// folder checks a committed folder: its bytes, and what load makes of them.
func (c *checker) folder(dir string, load func(dir string) []error) (Finding, error) {
	f := Finding{Path: c.below(dir), State: OK, Bytes: bytesIn(dir)}
	var faults []error
	err := atomicdir.Read(dir, func(folder *atomicdir.Stored) error {
		f.State = OK
		if folder.Manifest() == nil {
			f.State = Unverified
		}
		faults = folder.CheckAll(c.ctx)
		return errors.Join(faults...)
	})
	if ended := c.ctx.Err(); ended != nil {
		return f, ended
	}
	if err != nil && len(faults) == 0 { // the manifest itself
		faults = []error{err}
	}
	if err == nil {
		faults = load(dir)
	}
	if len(faults) > 0 {
		f.State = Damaged
		for _, fault := range faults {
			f.Faults = append(f.Faults, said(fault))
		}
		return f, nil
	}
	if f.State == Unverified && c.repair {
		if err := atomicdir.Seal(c.ctx, dir); err != nil {
			return f, err
		}
		f.State, f.Repaired = OK, "its manifest is written"
	}
	return f, nil
}

// report is folder for those where nothing else is to be done. What is gone meanwhile is nothing.
func (c *checker) report(dir string, load func(dir string) []error) error {
	f, err := c.folder(dir, load)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(dir); err == nil {
		c.found(f)
	}
	return nil
}

func (c *checker) below(path string) string {
	rel, err := filepath.Rel(c.root, path)
	if err != nil {
		return path
	}
	return filepath.ToSlash(rel)
}

// said returns an error in words, without the folder, which stands beside.
func said(err error) string {
	var damage *atomicdir.DamageError
	if errors.As(err, &damage) {
		return damage.File + " " + damage.Msg
	}
	return err.Error()
}

func isHidden(name string) bool { return name[0] == '.' }

// bytesIn returns the bytes of the files in a folder, or of a file.
func bytesIn(path string) (n int64) {
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
