// Package fsck checks everything in a data folder, and repairs what can be repaired without a loss.
//
// Check reads every byte and changes nothing. It may run next to a server, since stored folders are replaced as a whole
// and never changed. Repair needs the folder's lock. It removes the leftovers of crashes, writes missing manifests,
// replaces a run's damaged state by the previous one, which it keeps, and makes a damaged status again. It reports each
// repair, and deletes nothing that has a name.
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

// State is the state of something stored.
type State string

// The states.
const (
	OK         State = "ok"         // every byte is what was written
	Unverified State = "unverified" // it can be used, and has no manifest, as if made by hand
	Damaged    State = "damaged"    // it cannot be used, or differs from what was written
	Leftover   State = "leftover"   // a crash left it, and nothing needs it
)

// Finding is the result of a check of one file or folder.
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

// readable returns a check of whether something can be read.
func readable[From, T any](read func(From) (T, error)) func(From) error {
	return func(from From) error {
		_, err := read(from)
		return err
	}
}

// Check calls found for each file or folder in the data folder dir. If repair is true, it repairs what it can, and the
// caller holds the folder's lock. It fails if the data folder cannot be read or ctx ends.
func Check(ctx context.Context, dir string, repair bool, found func(Finding)) error {
	folders, err := catalog.FoldersOf(dir)
	if err != nil {
		return err
	}
	c := &checker{ctx: ctx, root: filepath.Dir(folders.Models), repair: repair, found: found}
	for _, k := range []struct {
		folder string
		check  func(dir string) error // of one thing in it
	}{
		{folders.Models, c.stored(func(dir string) error {
			_, faults := checkpoint.CheckModel(dir)
			return errors.Join(faults...)
		})},
		{folders.Schedules, c.stored(readable(checkpoint.LoadSchedule))},
		{folders.Plans, c.stored(readable(catalog.LoadPlan))},
		{folders.Bases, c.stored(readable(checkpoint.LoadBasis))},
		{folders.Datasets, c.stored(func(dir string) error {
			d, err := data.Load(dir)
			if err == nil {
				err = d.Check(ctx)
			}
			return err
		})},
		{folders.Runs, c.run},
	} {
		if err := c.all(k.folder, k.check); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return ctx.Err()
}

// all checks the contents of a folder, first its leftovers. It skips symbolic links, which lead elsewhere in it.
func (c *checker) all(folder string, check func(dir string) error) error {
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
		if entry.Name()[0] == '.' || !entry.IsDir() {
			continue
		}
		if err := check(filepath.Join(folder, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// leftovers reports the leftovers of crashes in a folder, and removes them if it repairs.
func (c *checker) leftovers(folder string) error {
	paths, err := atomicdir.Leftovers(folder)
	if err != nil {
		return err
	}
	for _, path := range paths {
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

// folder checks the bytes of a stored folder, and whether load reads it.
func (c *checker) folder(dir string, load func(dir string) error) (Finding, error) {
	f := Finding{Path: c.below(dir), State: OK, Bytes: atomicdir.Bytes(dir)}
	err := atomicdir.Read(dir, func(folder *atomicdir.Stored) error {
		f.State = OK
		if !folder.HasManifest() {
			f.State = Unverified
		}
		return errors.Join(folder.CheckAll(c.ctx)...)
	})
	if stop := c.ctx.Err(); stop != nil {
		return f, stop
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

// blame records the faults of err, one or several joined ones, if it is not nil.
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

// stored returns a check of a folder by its bytes and by load, which joins several faults. It reports nothing of one
// that was deleted meanwhile.
func (c *checker) stored(load func(dir string) error) func(dir string) error {
	return func(dir string) error {
		f, err := c.folder(dir, load)
		if err != nil {
			return err
		}
		if _, err := os.Lstat(dir); err == nil {
			c.found(f)
		}
		return nil
	}
}

func (c *checker) below(path string) string {
	rel, err := filepath.Rel(c.root, path)
	if err != nil {
		return path
	}
	return filepath.ToSlash(rel)
}
