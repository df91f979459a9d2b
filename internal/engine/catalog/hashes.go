package catalog

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
)

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
