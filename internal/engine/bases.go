package engine

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

// vectorsPrefix heads the tensors of a basis file: one [k, H, W] of float64 for each label, −1 for a shared basis.
const vectorsPrefix = "vectors."

// encodeBasis gives the file of a dense basis.
func encodeBasis(b *basis.Basis) ([]byte, error) {
	labels := []int{-1}
	if b.PerClass() {
		labels = b.Classes()
	}
	var f safetensors.File
	for _, label := range labels {
		v, err := b.Vectors(label)
		if err != nil {
			return nil, err
		}
		shape := []int{len(v) / (b.H() * b.W()), b.H(), b.W()}
		f.Tensors = append(f.Tensors, safetensors.FromFloat64s(vectorsPrefix+strconv.Itoa(label), shape, v))
	}
	var out bytes.Buffer
	err := safetensors.Write(&out, &f)
	return out.Bytes(), err
}

// readBasis reads a basis file and checks it as an upload is checked.
func readBasis(path string) (*basis.Basis, error) {
	f, err := safetensors.ReadFile(path)
	if err != nil {
		return nil, err
	}
	vectors := map[int][][]float64{}
	var h, w int
	for i := range f.Tensors {
		t := &f.Tensors[i]
		label, err := strconv.Atoi(strings.TrimPrefix(t.Name, vectorsPrefix))
		if err != nil || len(t.Shape) != 3 {
			return nil, fmt.Errorf("tensor %q is not the vectors of a label", t.Name)
		}
		values, err := t.Float64s()
		if err != nil {
			return nil, err
		}
		h, w = t.Shape[1], t.Shape[2]
		for v := range slices.Chunk(values, h*w) {
			vectors[label] = append(vectors[label], v)
		}
	}
	return basis.Dense(h, w, vectors)
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
