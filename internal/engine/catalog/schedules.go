package catalog

import (
	"cmp"
	"context"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
)

// ScheduleNamed returns the schedule of a request: "edm", a stored one, or that of a model, which is "edm" if the model
// has none.
func (c *Catalog) ScheduleNamed(ref api.ScheduleRef) (Schedule, error) {
	if ref.Name == "edm" {
		s, err := EDM(ref.T, schedule.DefaultG0)
		return Schedule{Parts: Parts{Schedule: s}, Name: "edm"}, err
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if s, stored := c.schedules.items[ref.Name]; stored {
		return s, nil
	}
	if m := c.models.items[ref.Name]; m != nil {
		return m.OwnSchedule()
	}
	if err := cmp.Or(c.schedules.damaged[ref.Name], c.models.damaged[ref.Name]); err != nil {
		return Schedule{}, err
	}
	missing := api.NotFound(api.ScheduleNotFound, "schedule", ref.Name, c.scheduleNames())
	if c.plans.inUse(ref.Name) {
		missing = missing.WithHint("There is a plan of that name: give it as plan, without schedule, solver and nfe.")
	}
	return Schedule{}, missing
}

// scheduleNames lists the names that a request may give a schedule. The caller holds mu.
func (c *Catalog) scheduleNames() []string {
	names := slices.Concat([]string{"edm"}, c.schedules.names(), c.models.names())
	slices.Sort(names)
	return slices.Compact(names)
}

// ModelOf returns the model that a schedule belongs to or was made for; nil if there is none, or if the model here has
// other weights.
func (c *Catalog) ModelOf(ref api.ScheduleRef) *Model {
	c.mu.RLock()
	defer c.mu.RUnlock()
	s, stored := c.schedules.items[ref.Name]
	if !stored {
		return c.models.items[ref.Name]
	}
	p := s.Provenance()
	if p == nil || p.Model == nil {
		return nil
	}
	m := c.models.items[p.Model.Name]
	if m == nil || p.Model.Hash != "" && p.Model.Hash != m.Hash {
		return nil
	}
	return m
}

// ScheduleFor returns the schedule of a request for a model: the model's own if the request names none. "edm" covers
// the model's noise levels.
func (c *Catalog) ScheduleFor(ref api.ScheduleRef, m *Model) (s Schedule, err error) {
	switch {
	case ref.Name == "edm" && ref.T != api.DefaultT:
		s, err = m.edm(ref.T)
	case ref.Name == "edm":
		s, err = m.edm(0)
	case ref.Given():
		s, err = c.ScheduleNamed(ref)
	default:
		s, err = m.OwnSchedule()
	}
	if err == nil {
		err = m.CheckRange(s)
	}
	return s, err
}

// ScheduleAndNetwork returns that schedule, and the programs of the model's network for its basis.
func (c *Catalog) ScheduleAndNetwork(ref api.ScheduleRef, m *Model) (Schedule, *kernels.Model, error) {
	s, err := c.ScheduleFor(ref, m)
	if err != nil {
		return s, nil, err
	}
	h, w, _ := m.ImageSize()
	family := s.Family()
	b, err := c.BasisFor(family, h, w, s.Basis, m)
	if err != nil {
		return s, nil, err
	}
	if b.J() != s.J() {
		return s, nil, api.Errorf(api.BadRequest, "The schedule %q has %d subspaces, its basis %q splits images into %d",
			s.Name, s.J(), family.Basis, b.J())
	}
	network, err := m.NetworkOn(b)
	return s, network, err
}

// ScheduleInfos describes the schedules, including those of models.
func (c *Catalog) ScheduleInfos() []api.ScheduleInfo {
	all := infos(&c.schedules.shelf, func(_ string, s Schedule) api.ScheduleInfo {
		info := describeSchedule("schedule", s)
		info.Integrity.State = api.Intact
		return info
	}, func(name string, files api.Integrity) api.ScheduleInfo {
		return api.ScheduleInfo{Name: name, Source: "schedule", Integrity: files}
	})
	for _, m := range c.Models() {
		if s, err := m.OwnSchedule(); err == nil {
			s.Name = m.Name
			all = append(all, describeSchedule("model", s))
		}
	}
	slices.SortFunc(all, func(a, b api.ScheduleInfo) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// StoreSchedule stores a new schedule with its parts and describes it.
func (c *Catalog) StoreSchedule(name string, parts Parts, replace bool) (info api.ScheduleInfo, err error) {
	s, err := newSchedule(name, parts)
	if err != nil {
		return info, err
	}
	c.changes.Lock()
	defer c.changes.Unlock()
	if err := c.FreeSchedule(name, replace); err != nil {
		return info, err
	}
	return describeSchedule("schedule", s), c.schedules.put(name, s)
}

// FreeSchedule checks that a schedule may be stored under name.
func (c *Catalog) FreeSchedule(name string, replace bool) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.models.items[name] != nil {
		return api.Errorf(api.NameTaken, "A model is called %q, and its name means its own schedule", name).
			WithHint("Choose another name.")
	}
	return free("schedule", name, c.schedules.inUse(name), replace)
}

// DeleteSchedule deletes a stored schedule.
func (c *Catalog) DeleteSchedule(_ context.Context, req api.ScheduleName) error {
	name := req.Schedule
	c.changes.Lock()
	defer c.changes.Unlock()
	c.mu.RLock()
	stored, model, names := c.schedules.inUse(name), c.models.items[name] != nil, c.scheduleNames()
	c.mu.RUnlock()
	switch {
	case model && !stored:
		return api.Errorf(api.BadRequest, "The schedule %q belongs to the model of that name", name).
			WithHint("It goes with DeleteModel.")
	case !stored:
		return api.NotFound(api.ScheduleNotFound, "schedule", name, names)
	}
	return c.schedules.remove(name)
}
