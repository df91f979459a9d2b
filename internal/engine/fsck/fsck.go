// Package fsck checks everything that lies in a data folder, and repairs what can be repaired without a loss.
//
// Checking reads every byte and changes nothing: it may be done beside a server, since what is committed is replaced as
// a whole and never changed. Repairing needs the folder's lock. It removes what crashes have left, writes the manifests
// of what was stored without one, puts a run's previous state in the place of a damaged one, which it keeps aside, and
// makes a damaged status again. It says so of each, and deletes nothing that has a name.
//
// Begin at Check.
package fsck

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
	"github.com/anisoflight/anisoflight/train/data"
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

// kind is how the stored things of one folder are checked.
type kind struct {
	folder string
	load   func(dir string) error // reads one whose bytes are what was written; several faults are joined
	check  func(dir string) error // in place of its bytes and load
}

// reading returns a check of whether something can be read.
func reading[From, T any](read func(From) (T, error)) func(From) error {
	return func(from From) error {
		_, err := read(from)
		return err
	}
}

// Check calls found with what lies in the data folder dir, place by place, and repairs what it can if repair is true;
// the caller then holds the folder's lock. An error is one of reading the folder itself, or the end of ctx.
func Check(ctx context.Context, dir string, repair bool, found func(Finding)) error {
	folders, err := catalog.FoldersOf(dir)
	if err != nil {
		return err
	}
	c := &checker{ctx: ctx, root: filepath.Dir(folders.Models), repair: repair, found: found}
	for _, k := range []kind{
		{folder: folders.Models, load: func(dir string) error {
			_, faults := checkpoint.CheckModel(dir)
			return errors.Join(faults...)
		}},
		{folder: folders.Schedules, load: reading(checkpoint.LoadSchedule)},
		{folder: folders.Bases, load: reading(checkpoint.LoadBasis)},
		{folder: folders.Datasets, load: func(dir string) error {
			d, err := data.Load(dir)
			if err == nil {
				err = d.Check(ctx)
			}
			return err
		}},
		{folder: folders.Runs, check: c.run},
	} {
		if err := c.all(k); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return ctx.Err()
}

// all checks what lies in a folder, after its leftovers. What a symbolic link leads to lies elsewhere in it.
func (c *checker) all(k kind) error {
	if err := c.leftovers(k.folder); err != nil {
		return err
	}
	entries, err := os.ReadDir(k.folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		path := filepath.Join(k.folder, entry.Name())
		var err error
		switch {
		case entry.Name()[0] == '.', !entry.IsDir():
		case k.check != nil:
			err = k.check(path)
		default:
			err = c.report(path, k.load)
		}
		if err != nil {
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
		f := Finding{Path: c.below(path), State: Leftover, Bytes: atomicdir.Bytes(path)}
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
func (c *checker) folder(dir string, load func(dir string) error) (Finding, error) {
	f := Finding{Path: c.below(dir), State: OK, Bytes: atomicdir.Bytes(dir)}
	err := atomicdir.Read(dir, func(folder *atomicdir.Stored) error {
		f.State = OK
		if !folder.HasManifest() {
			f.State = Unverified
		}
		return errors.Join(folder.CheckAll(c.ctx)...)
	})
	if ended := c.ctx.Err(); ended != nil {
		return f, ended
	}
	if err == nil {
		err = load(dir)
	}
	f.blame(err)
	if f.State == Unverified && c.repair {
		if err := atomicdir.Seal(c.ctx, dir); err != nil {
			return f, err
		}
		f.State, f.Repaired = OK, "its manifest is written"
	}
	return f, nil
}

// blame notes what is wrong, if err is not nil: one fault, or several that are joined.
func (f *Finding) blame(err error) {
	faults := []error{err}
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		faults = joined.Unwrap()
	}
	for _, fault := range faults {
		if fault != nil {
			f.State, f.Faults = Damaged, append(f.Faults, catalog.FaultOf(fault))
		}
	}
}

// report is folder for folders that need nothing else. What is gone meanwhile is nothing.
func (c *checker) report(dir string, load func(dir string) error) error {
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
