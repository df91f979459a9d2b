package engine

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// readBasis reads a basis file.
func readBasis(path string) (*basis.Basis, error) {
	file, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return checkpoint.DecodeBasis(file)
}

func (e *Engine) basisPath(name string) string {
	return filepath.Join(e.folders.bases, name+".safetensors")
}

// scanBases reads the stored bases.
func (e *Engine) scanBases() {
	for _, name := range storedNames(e.folders.bases, ".safetensors") {
		b, err := readBasis(e.basisPath(name))
		if err != nil {
			e.log.Warn("basis left out", "name", name, "error", err)
			continue
		}
		e.bases[name] = b
	}
}

// storedNames lists the names of the files in folder that end in suffix, or of the folders in it if suffix is empty.
func storedNames(folder, suffix string) []string {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil
	}
	var names []string
	for _, entry := range entries {
		name, ok := strings.CutSuffix(entry.Name(), suffix)
		if ok && api.CheckName("name", name) == nil && checkReserved(name) == nil {
			names = append(names, name)
		}
	}
	return names
}

// basisKey names the bases that a formula gives.
type basisKey struct {
	family string
	h, w   int
}

// basisFor gives the basis that a family means on images of h×w: by formula (none, dct, haar), or by name. A name is looked
// up in own, the basis that travels with a schedule, then in the catalogue, then with m, a model that may have learned on
// it; own and m may be nil. Equal answers are the same pointer.
func (e *Engine) basisFor(f schedule.Family, h, w int, own *basis.Basis, m *model) (*basis.Basis, error) {
	b, ok, err := e.formula(f, h, w)
	if ok || err != nil {
		return b, err
	}
	if b = own; b == nil {
		if b, err = e.basisKnown(f.Basis, m); err != nil {
			return nil, err
		}
	}
	switch {
	case b.H() != h || b.W() != w:
		return nil, api.Errorf(api.BadRequest, "Basis %q is made for %d×%d pixels, the images have %d×%d", f.Basis, b.H(), b.W(), h, w)
	case f.K != 0 && f.K != b.K():
		return nil, api.Errorf(api.BadRequest, "Basis %q has k = %d, not %d", f.Basis, b.K(), f.K)
	}
	return b, nil
}

// formula gives a family's basis where its name and numbers determine it.
func (e *Engine) formula(f schedule.Family, h, w int) (*basis.Basis, bool, error) {
	key := basisKey{fmt.Sprint(f.Basis, f.K, f.Cuts), h, w}
	e.mu.Lock()
	defer e.mu.Unlock()
	if b, ok := e.made[key]; ok {
		return b, true, nil
	}
	b, ok, err := basis.Formula(f.Basis, h, w, f.K, f.Cuts)
	if err != nil {
		return nil, ok, api.Errorf(api.BadRequest, "There is no such basis %s on %d×%d pixels: %w", f.Basis, h, w, err).
			WithHint("For dct k is a perfect square and cuts increase; for haar k is H·W/4, or a quarter of that and so on.")
	}
	if ok {
		e.made[key] = b
	}
	return b, ok, nil
}

// basisKnown finds a basis by name, in the catalogue or with a model that may have learned on it.
func (e *Engine) basisKnown(name string, m *model) (*basis.Basis, error) {
	b, err := e.basisNamed(name)
	if err != nil && m != nil && m.basis != nil && m.sched != nil && m.sched.Family().Basis == name {
		return m.basis, nil
	}
	return b, err
}

// storedByName reports whether a family's basis is one that has to be stored under its name: neither by formula nor made of a
// run's data set, to travel with the model.
func storedByName(name string) bool {
	_, known := basis.Lookup(name)
	return !known
}

// made keeps the bases that MakeBasis makes.
func made(d basis.Definition) bool { return d.Made }

// checkKind returns an error unless name is one of the bases that keep keeps; field is the request's.
func checkKind(field, name string, keep func(basis.Definition) bool) error {
	if known := basis.Names(keep); !slices.Contains(known, name) {
		return api.Errorf(api.BadRequest, "%s must be one of %s, got %q", field, strings.Join(known, ", "), name)
	}
	return nil
}

// checkCuts returns an error where cuts are given for a basis that takes none.
func checkCuts(name string, cuts []int) error {
	if d, _ := basis.Lookup(name); cuts != nil && !d.Cuts {
		return api.Errorf(api.BadRequest, "cuts must be left out for basis %q; only %s takes it", name, basis.Nested())
	}
	return nil
}

// checkReserved returns an error for the names of built-in schedules and bases, which nothing stored may take.
func checkReserved(name string) error {
	reserved := append([]string{"edm"}, basis.Names(nil)...)
	if slices.Contains(reserved, name) {
		return api.Errorf(api.BadRequest, "name must not be one of the reserved names %s, got %q", strings.Join(reserved, " "), name)
	}
	return nil
}

// basisNamed gives a stored basis.
func (e *Engine) basisNamed(name string) (*basis.Basis, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	b, ok := e.bases[name]
	switch {
	case ok:
		return b, nil
	case !storedByName(name):
		return nil, api.Errorf(api.BadRequest, "The basis %q is made of images, and there are none here", name).
			WithHint("CreateRun makes it of the run's data set; MakeBasis stores one under a name, to be used by that name.")
	}
	return nil, api.Errorf(api.BasisNotFound, "No basis is called %q", name).
		WithHint("There are none, dct and haar, and what is stored: %s.", listed(e.bases))
}

// listed names the keys of a catalogue for a hint.
func listed[V any](m map[string]V) string { return listedNames(slices.Sorted(maps.Keys(m))) }

func listedNames(names []string) string {
	const most = 20
	switch {
	case len(names) == 0:
		return "none so far"
	case len(names) > most:
		return strings.Join(names[:most], " ") + " …"
	}
	return strings.Join(names, " ")
}

func (e *Engine) basisInfos() []api.BasisInfo {
	e.mu.RLock()
	defer e.mu.RUnlock()
	infos := []api.BasisInfo{}
	for _, name := range slices.Sorted(maps.Keys(e.bases)) {
		infos = append(infos, describeBasis(name, e.bases[name]))
	}
	return infos
}

// storeBasis writes a new basis.
func (e *Engine) storeBasis(name string, b *basis.Basis, replace bool) error {
	file, err := checkpoint.EncodeBasis(b)
	if err != nil {
		return err
	}
	e.changes.Lock()
	defer e.changes.Unlock()
	if err := e.freeBasis(name, replace); err != nil {
		return err
	}
	if err := writeFile(e.basisPath(name), file); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.bases[name] = b
	return nil
}

// freeBasis tells whether a basis may be stored under name.
func (e *Engine) freeBasis(name string, replace bool) error {
	if err := checkReserved(name); err != nil {
		return err
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	if _, taken := e.bases[name]; taken && !replace {
		return nameTaken("basis", name)
	}
	return nil
}

// removeBasis deletes a basis. Schedules, runs and models keep the copy that they took.
func (e *Engine) removeBasis(name string) error {
	e.changes.Lock()
	defer e.changes.Unlock()
	if _, err := e.basisNamed(name); err != nil {
		return err
	}
	if err := os.Remove(e.basisPath(name)); err != nil && !missing(err) {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.bases, name)
	return nil
}
