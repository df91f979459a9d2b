package catalog

import (
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/explain"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
)

// shelf holds the stored things of one kind by their names.
type shelf[T any] struct {
	kind    string        // in messages
	mu      *sync.RWMutex // of the catalogue; guards the maps
	items   map[string]T
	damaged map[string]error // why something cannot be used; it has its name until it is deleted or replaced
}

func newShelf[T any](kind string, mu *sync.RWMutex) shelf[T] {
	return shelf[T]{kind: kind, mu: mu, items: map[string]T{}, damaged: map[string]error{}}
}

// inUse reports whether a name is in use. The caller holds mu.
func (s *shelf[T]) inUse(name string) bool {
	_, ok := s.items[name]
	return ok || s.damaged[name] != nil
}

func (s *shelf[T]) set(name string, value T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.items[name] = value
	delete(s.damaged, name)
}

func (s *shelf[T]) drop(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.items, name)
	delete(s.damaged, name)
}

// recordRead records what was read of a name when the folder was opened.
func (s *shelf[T]) recordRead(log *slog.Logger, name string, value T, err error) {
	if err == nil {
		s.set(name, value)
		return
	}
	log.Warn("damaged, and left out", "what", s.kind, "name", name, "error", err)
	s.damaged[name] = Damaged(s.kind, name, err)
}

// names lists the names in use, sorted. The caller holds mu.
func (s *shelf[T]) names() []string {
	return slices.Sorted(maps.Keys(s.items))
}

// infos describes what is stored, sorted by name, and then what cannot be used.
func infos[T, I any](
	s *shelf[T], describe func(name string, value T) I, damaged func(name string, files api.Integrity) I,
) []I {
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := []I{}
	for _, name := range s.names() {
		out = append(out, describe(name, s.items[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(s.damaged)) {
		out = append(out, damaged(name, damagedBy(api.ErrorOf(s.damaged[name]))))
	}
	return out
}

// folders is a shelf whose things are folders NAME and suffix.
type folders[T any] struct {
	shelf[T]
	dir, suffix string

	load func(name, folder string) (T, error)
	save func(folder string, value T) error
}

func (s *folders[T]) folder(name string) string { return filepath.Join(s.dir, name+s.suffix) }

// scan reads what is stored.
func (s *folders[T]) scan(log *slog.Logger) {
	for _, name := range StoredNames(s.dir, s.suffix) {
		value, err := s.load(name, s.folder(name))
		s.recordRead(log, name, value, err)
	}
}

// put stores a value, and replaces what has its name. The caller holds the catalogue's changes.
func (s *folders[T]) put(name string, value T) error {
	if err := s.save(s.folder(name), value); err != nil {
		return err
	}
	s.set(name, value)
	return nil
}

// remove deletes what has a name. The caller holds the catalogue's changes.
func (s *folders[T]) remove(name string) error {
	if err := atomicdir.Remove(s.folder(name)); err != nil {
		return err
	}
	s.drop(name)
	return nil
}

// Damaged returns the error of something stored that cannot be used.
func Damaged(kind, name string, err error) *api.Error {
	if _, ok := errors.AsType[*atomicdir.DamageError](err); !ok {
		err = withoutPath(err)
	}
	return api.Errorf(api.Damaged, "The %s %q is damaged: %s", kind, name, FaultOf(err)).WithHint("%s", api.DamageHint)
}

// notRead returns the error of a read that failed: [Damaged], or STORAGE if what is stored may be intact.
func notRead(kind, name string, err error) *api.Error {
	for _, refusal := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ESTALE, fs.ErrPermission} {
		if errors.Is(err, refusal) {
			return api.Errorf(api.Storage, "The %s %q cannot be read: %s", kind, name, explain.Disk(err)).
				WithHint("Mend that, and ask again.")
		}
	}
	return Damaged(kind, name, err)
}

// FaultOf describes why something stored cannot be used, without its path.
func FaultOf(err error) string {
	if damage, ok := errors.AsType[*atomicdir.DamageError](err); ok {
		return damage.File + " " + damage.Msg
	}
	if e, ok := errors.AsType[*api.Error](err); ok {
		return e.Message
	}
	return err.Error()
}

func damagedBy(err *api.Error) api.Integrity {
	return api.Integrity{State: api.IsDamaged, Damage: err.Message}
}
