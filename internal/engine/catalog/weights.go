package catalog

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
)

// residents are the models whose weights are on the device, the least recently used first.
type residents struct {
	mu     sync.Mutex
	models []*Model
}

// use notes that a model is in use.
func (r *residents) use(m *Model) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.models = append(slices.DeleteFunc(r.models, func(o *Model) bool { return o == m }), m)
}

// forget takes a model out.
func (r *residents) forget(m *Model) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.models = slices.DeleteFunc(r.models, func(o *Model) bool { return o == m })
}

// bytes returns those of all weights.
func (r *residents) bytes() (n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.models {
		n += m.bytes()
	}
	return n
}

// makeRoom unloads models that nobody holds until so many bytes of weights fit, or none is left. Where memory has no
// bound of its own, as much again is kept for the programs.
func (c *Catalog) makeRoom(bytes int64) error {
	dev, err := c.cfg.Device()
	if err != nil {
		return err
	}
	short := func() bool {
		if c.cfg.ModelBytes > 0 {
			return c.loaded.bytes()+bytes > c.cfg.ModelBytes
		}
		available, known := dev.Available()
		return known && available < 2*bytes
	}
	c.loaded.mu.Lock()
	idle := slices.Clone(c.loaded.models)
	c.loaded.mu.Unlock()
	for _, m := range idle {
		if !short() {
			break
		}
		if m.unload() {
			c.log.Info("model unloaded, since memory is short", "model", m.Name)
		}
	}
	return nil
}

// hashes remembers the hashes of weights, so that large files are read for them once. They are kept in a file beside
// the folders, which may be deleted at any time.
type hashes struct {
	mu    sync.Mutex
	path  string
	root  string
	known map[string]knownHash // by the weights' place under root
}

// knownHash is the hash of a file of that size and time.
type knownHash struct {
	Size int64     `json:"size"`
	Time time.Time `json:"time"`
	Hash string    `json:"hash"`
}

func (h *hashes) read(f Folders) {
	h.root = f.Models
	h.path = filepath.Join(filepath.Dir(f.Models), "hashes.json")
	if text, err := os.ReadFile(h.path); err == nil {
		_ = json.Unmarshal(text, &h.known) // what cannot be read is found anew
	}
	if h.known == nil {
		h.known = map[string]knownHash{}
	}
}

// of returns the hash of a model folder's weights.
func (h *hashes) of(folder string) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	info, err := os.Stat(checkpoint.WeightsFile(folder))
	if err != nil {
		return "", err
	}
	key, err := filepath.Rel(h.root, folder)
	if err != nil {
		return "", err
	}
	if k, ok := h.known[key]; ok && k.Size == info.Size() && k.Time.Equal(info.ModTime()) {
		return k.Hash, nil
	}
	hash, err := checkpoint.HashWeights(folder)
	if err != nil {
		return "", err
	}
	h.known[key] = knownHash{info.Size(), info.ModTime(), hash}
	if text, err := json.Marshal(h.known); err == nil {
		_ = atomicdir.WriteFile(h.path, text) // else it is found again the next time
	}
	return hash, nil
}
