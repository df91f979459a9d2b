package catalog

import (
	"context"
	"fmt"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/base/suggest"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// basisKey names the bases that a formula gives.
type basisKey struct {
	family string
	h, w   int
}

// BasisFor returns the basis of a family on images of h×w: by a formula (none, dct, haar), or ofSchedule, the basis of
// the family's schedule, or the stored basis of that name, or the basis of model m. ofSchedule and m may be nil. Equal
// bases by formula are the same pointer.
func (c *Catalog) BasisFor(f schedule.Family, h, w int, ofSchedule *basis.Basis, m *Model) (*basis.Basis, error) {
	b, ok, err := c.Formula(f, h, w)
	if ok || err != nil {
		return b, err
	}
	if b = ofSchedule; b == nil {
		if b, err = c.basisKnown(f.Basis, m); err != nil {
			return nil, err
		}
	}
	switch {
	case b.H() != h || b.W() != w:
		return nil, api.Errorf(api.BadRequest, "Basis %q is made for %d×%d pixels, the images have %d×%d", f.Basis, b.H(),
			b.W(), h, w)
	case f.K != 0 && f.K != b.K():
		return nil, api.Errorf(api.BadRequest, "Basis %q has k = %d, not %d", f.Basis, b.K(), f.K)
	}
	return b, nil
}

// Formula returns the basis of a family on images of h×w if a formula gives it; ok reports whether one does.
func (c *Catalog) Formula(f schedule.Family, h, w int) (b *basis.Basis, ok bool, err error) {
	key := basisKey{fmt.Sprint(f.Basis, f.K, f.Cuts), h, w}
	c.mu.Lock()
	defer c.mu.Unlock()
	if b, ok := c.formulas[key]; ok {
		return b, true, nil
	}
	b, ok, err = basis.Formula(f.Basis, h, w, f.K, f.Cuts)
	if err != nil {
		return nil, ok, api.Errorf(api.BadRequest, "The basis %s cannot be made on %d×%d pixels: %w", f.Basis, h, w, err).
			WithHint("For dct k is a perfect square and cuts increase; for haar k is H·W/4, or a quarter of that and so on.")
	}
	if ok {
		c.formulas[key] = b
	}
	return b, ok, nil
}

// basisKnown finds a basis by name among the stored ones, or in model m, which may be nil.
func (c *Catalog) basisKnown(name string, m *Model) (*basis.Basis, error) {
	b, err := c.Basis(name)
	if err != nil && m != nil && m.Basis != nil && m.Schedule != nil && m.Schedule.Family().Basis == name {
		return m.Basis, nil
	}
	return b, err
}

// BasisClasses returns the labels that have vectors in the basis of a schedule; nil if all classes share them. m may be
// nil.
func (c *Catalog) BasisClasses(s Schedule, m *Model) []int {
	if s.Basis != nil {
		return s.Basis.Classes()
	}
	b, err := c.basisKnown(s.Family().Basis, m)
	if err != nil {
		return nil
	}
	return b.Classes()
}

// StoredByName reports whether a family's basis must be stored under its name: no formula gives it, and no run makes it
// of its data set.
func StoredByName(name string) bool {
	_, known := basis.Lookup(name)
	return !known
}

// BasisKind returns the definition of a basis that keep accepts; field names the request's field in errors.
func BasisKind(field, name string, keep func(basis.Definition) bool) (basis.Definition, error) {
	d, ok := basis.Lookup(name)
	if !ok || !keep(d) {
		return d, api.Errorf(api.BadRequest, "%s %s", field, suggest.OneOf(name, basis.Names(keep)))
	}
	return d, nil
}

// Basis returns a stored basis.
func (c *Catalog) Basis(name string) (*basis.Basis, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if b, ok := c.bases.items[name]; ok {
		return b, nil
	}
	if err := c.bases.damaged[name]; err != nil {
		return nil, err
	}
	if !StoredByName(name) {
		return nil, api.Errorf(api.BadRequest, "The basis %q is made of images, and no images are given", name).
			WithHint("CreateRun makes it of the run's data set; MakeBasis stores one under a name, to be used by that name.")
	}
	return nil, api.NotFound(api.BasisNotFound, "basis", name,
		append(basis.Names(basis.Definition.ByFormula), c.bases.names()...))
}

func describeBasis(name string, b *basis.Basis) api.BasisInfo {
	return api.BasisInfo{Name: name, Height: b.H(), Width: b.W(), K: b.K(), PerClass: b.PerClass()}
}

// BasisInfos describes the stored bases.
func (c *Catalog) BasisInfos() []api.BasisInfo {
	return infos(&c.bases.shelf, func(name string, b *basis.Basis) api.BasisInfo {
		info := describeBasis(name, b)
		info.Integrity.State = api.Intact
		return info
	}, func(name string, files api.Integrity) api.BasisInfo {
		return api.BasisInfo{Name: name, Integrity: files}
	})
}

// StoreBasis stores a new basis and describes it.
func (c *Catalog) StoreBasis(name string, b *basis.Basis, replace bool) (api.BasisInfo, error) {
	c.changes.Lock()
	defer c.changes.Unlock()
	if err := c.FreeBasis(name, replace); err != nil {
		return api.BasisInfo{}, err
	}
	return describeBasis(name, b), c.bases.put(name, b)
}

// FreeBasis checks that a basis may be stored under name.
func (c *Catalog) FreeBasis(name string, replace bool) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return free("basis", name, c.bases.inUse(name), replace)
}

// DeleteBasis deletes a basis. Schedules, runs and models have copies of their own.
func (c *Catalog) DeleteBasis(_ context.Context, req api.BasisName) error {
	c.changes.Lock()
	defer c.changes.Unlock()
	if _, err := c.Basis(req.Basis); err != nil && api.ErrorOf(err).Code != api.Damaged {
		return err
	}
	return c.bases.remove(req.Basis)
}
