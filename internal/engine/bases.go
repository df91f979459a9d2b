package engine

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/anisoflight/anisoflight/flight/api"
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
		if ok && api.CheckName("name", name) == nil {
			names = append(names, name)
		}
	}
	return names
}

// basisKey names the bases that the engine makes itself.
type basisKey struct {
	kind    string
	h, w, k int
}

// basisFor gives the basis that a family means on images of h×w: none, dct, or one by name, looked up first in own (the
// basis that travels with a model) and then in the catalogue. Equal answers are the same pointer.
func (e *Engine) basisFor(kind string, k, h, w int, own *basis.Basis) (*basis.Basis, error) {
	switch kind {
	case "none", "dct":
		key := basisKey{kind, h, w, k}
		e.mu.Lock()
		defer e.mu.Unlock()
		if b, ok := e.made[key]; ok {
			return b, nil
		}
		b := basis.None(h, w)
		if kind == "dct" {
			var err error
			if b, err = basis.DCT(h, w, k); err != nil {
				return nil, api.Errorf(api.BadRequest, "There is no DCT basis with k = %d on %d×%d pixels: %w", k, h, w, err).
					WithHint("k must be a perfect square, and every frequency below its root must exist.")
			}
		}
		e.made[key] = b
		return b, nil
	}
	b := own
	if b == nil {
		var err error
		if b, err = e.basisNamed(kind); err != nil {
			return nil, err
		}
	}
	if b.H() != h || b.W() != w {
		return nil, api.Errorf(api.BadRequest, "Basis %q is made for %d×%d pixels, the images have %d×%d", kind, b.H(), b.W(), h, w)
	}
	return b, nil
}

// basisNamed gives an uploaded basis.
func (e *Engine) basisNamed(name string) (*basis.Basis, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	b, ok := e.bases[name]
	if !ok {
		return nil, api.Errorf(api.BasisNotFound, "No basis is called %q", name).
			WithHint("There are none and dct, and what was uploaded: %s.", listed(e.bases))
	}
	return b, nil
}

// listed names the keys of a catalogue for a hint.
func listed[V any](m map[string]V) string {
	names := slices.Sorted(maps.Keys(m))
	const most = 20
	switch {
	case len(names) == 0:
		return "none so far"
	case len(names) > most:
		return strings.Join(names[:most], " ") + " …"
	}
	return strings.Join(names, " ")
}

func (e *Engine) listBases() []api.BasisInfo {
	e.mu.RLock()
	defer e.mu.RUnlock()
	infos := []api.BasisInfo{}
	for _, name := range slices.Sorted(maps.Keys(e.bases)) {
		b := e.bases[name]
		infos = append(infos, api.BasisInfo{Name: name, Height: b.H(), Width: b.W(), K: b.K(), PerClass: b.PerClass()})
	}
	return infos
}

func (e *Engine) deleteBasis(name string) error {
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
