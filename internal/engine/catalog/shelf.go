package catalog

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
)

// shelf holds the stored things of one kind. Each is a folder, NAME and suffix; older programs have stored a file, NAME
// and fileSuffix.
type shelf[T any] struct {
	catalog            *Catalog
	kind               kind
	dir                string
	suffix, fileSuffix string

	load   func(name, folder string) (T, error)
	decode func(name string, file []byte) (T, error)

	items map[string]item[T] // guarded by the catalogue's mu
}

// item is something stored, with what is known of its files.
type item[T any] struct {
	value T
	files api.Integrity
}

func (s *shelf[T]) folder(name string) string { return filepath.Join(s.dir, name+s.suffix) }

func (s *shelf[T]) file(name string) string { return filepath.Join(s.dir, name+s.fileSuffix) }

// scan reads what is stored. If a crash has left both a file and a folder, the folder counts.
func (s *shelf[T]) scan() {
	for _, name := range StoredNames(s.dir, s.fileSuffix) {
		if exists(s.folder(name)) {
			continue
		}
		var value T
		file, err := os.ReadFile(s.file(name))
		if err == nil {
			value, err = s.decode(name, file)
		}
		s.found(name, item[T]{value, api.Integrity{State: api.Unverified}}, err)
	}
	for _, name := range StoredNames(s.dir, s.suffix) {
		value, err := s.load(name, s.folder(name))
		s.found(name, item[T]{value, ReadWhole(s.folder(name))}, err)
	}
}

func (s *shelf[T]) found(name string, thing item[T], err error) {
	if err != nil {
		s.catalog.leaveOut(s.kind, name, err)
		return
	}
	s.items[name] = thing
}

// taken reports whether a name is in use, be it by something that cannot be read. The caller holds mu.
func (s *shelf[T]) taken(name string) bool {
	_, ok := s.items[name]
	return ok || s.catalog.broken.find(s.kind, name) != nil
}

// put stores a value, which save writes as a folder, in place of what has its name. The caller holds changes.
func (s *shelf[T]) put(name string, value T, save func(folder string) error) error {
	if err := save(s.folder(name)); err != nil {
		return err
	}
	if err := atomicdir.Remove(s.file(name)); err != nil {
		return err
	}
	s.catalog.mu.Lock()
	defer s.catalog.mu.Unlock()
	s.items[name] = item[T]{value, ReadWhole(s.folder(name))}
	s.catalog.broken.mended(s.kind, name)
	return nil
}

// remove deletes what has a name. The caller holds changes.
func (s *shelf[T]) remove(name string) error {
	if err := atomicdir.Remove(s.file(name)); err != nil { // first: if it were left, it would take the folder's place
		return err
	}
	if err := atomicdir.Remove(s.folder(name)); err != nil {
		return err
	}
	s.catalog.mu.Lock()
	defer s.catalog.mu.Unlock()
	delete(s.items, name)
	s.catalog.broken.mended(s.kind, name)
	return nil
}

// kind is what something stored is called in messages.
type kind string

const (
	modelKind    kind = "model"
	scheduleKind kind = "schedule"
	basisKind    kind = "basis"
	datasetKind  kind = "data set"
)

// broken is what lies in the folder and cannot be used, with the reason, by kind and name. It keeps its name until it
// is deleted or replaced. The catalogue's mu guards it.
type broken map[kind]map[string]*api.Error

// Damaged returns the error of something stored that cannot be used.
func Damaged(k, name string, err error) *api.Error {
	text := withoutPath(err).Error()
	var damage *atomicdir.DamageError
	if errors.As(err, &damage) {
		text = damage.File + " " + damage.Msg
	}
	return api.Errorf(api.Damaged, "The %s %q is damaged: %s", k, name, text).WithHint("%s", api.DamageHint)
}

// leaveOut notes that something stored cannot be used.
func (c *Catalog) leaveOut(k kind, name string, err error) {
	c.log.Warn("damaged, and left out", "what", k, "name", name, "error", err)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken[k] == nil {
		c.broken[k] = map[string]*api.Error{}
	}
	c.broken[k][name] = Damaged(string(k), name, err)
}

// mended takes back that something cannot be used. The caller holds mu.
func (b broken) mended(k kind, name string) { delete(b[k], name) }

// find returns the error of something that cannot be used, nil where there is none. The caller holds mu.
func (b broken) find(k kind, name string) error {
	if err, ok := b[k][name]; ok {
		return err
	}
	return nil
}

// each calls do for all things of a kind that cannot be used, by name. The caller holds mu.
func (b broken) each(k kind, do func(name string, of api.Integrity)) {
	for _, name := range slices.Sorted(maps.Keys(b[k])) {
		do(name, damagedBy(b[k][name]))
	}
}

func damagedBy(err *api.Error) api.Integrity {
	return api.Integrity{State: api.IsDamaged, Damage: err.Message}
}

// ReadWhole is the integrity of a folder that has been read without a fault.
func ReadWhole(folder string) api.Integrity {
	if exists(filepath.Join(folder, atomicdir.ManifestFile)) {
		return api.Integrity{State: api.Checked}
	}
	return api.Integrity{State: api.Unverified}
}
