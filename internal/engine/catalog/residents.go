package catalog

import (
	"slices"
	"sync"
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
