package catalog

import (
	"errors"
	"maps"
	"path/filepath"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
)

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
	text := notes(err).Error()
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
