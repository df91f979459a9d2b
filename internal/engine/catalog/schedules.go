package catalog

import (
	"bytes"
	"cmp"
	"maps"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// What the names of stored schedules end in: a schedule is a folder; older programs have stored a file where nothing
// goes with it.
const (
	ScheduleFolderSuffix = ".schedule"
	ScheduleFileSuffix   = ".json"
)

// ScheduleNamed finds what a request calls a schedule: "edm", a stored one, or a model's own, which is "edm" for a
// model without.
func (c *Catalog) ScheduleNamed(ref api.ScheduleRef) (Schedule, error) {
	if ref.Name == "edm" {
		s, err := EDM(ref.T)
		return Schedule{Schedule: s, Name: "edm"}, err
	}
	c.mu.RLock()
	s, stored := c.schedules.items[ref.Name]
	m := c.models[ref.Name]
	damage := cmp.Or(c.broken.find(scheduleKind, ref.Name), c.broken.find(modelKind, ref.Name))
	c.mu.RUnlock()
	switch {
	case stored:
		return s.value, nil
	case m != nil:
		return m.OwnSchedule()
	case damage != nil:
		return Schedule{}, damage
	}
	return Schedule{}, api.NotFound(api.ScheduleNotFound, "schedule", ref.Name, c.scheduleNames())
}

// ModelOf returns the model that a schedule belongs to or was made for; nil where there is none, or it is not here with
// the same weights.
func (c *Catalog) ModelOf(ref api.ScheduleRef) *Model {
	c.mu.RLock()
	defer c.mu.RUnlock()
	s, stored := c.schedules.items[ref.Name]
	if !stored {
		return c.models[ref.Name]
	}
	p := s.value.Provenance()
	if p == nil || p.Model == nil {
		return nil
	}
	m := c.models[p.Model.Name]
	if m == nil || p.Model.Hash != "" && p.Model.Hash != m.Hash {
		return nil
	}
	return m
}

// scheduleNames lists what a request may call a schedule.
func (c *Catalog) scheduleNames() []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	names := slices.AppendSeq([]string{"edm"}, maps.Keys(c.schedules.items))
	return slices.Compact(slices.Sorted(slices.Values(slices.AppendSeq(names, maps.Keys(c.models)))))
}

// ScheduleInfos describes the schedules, those of models included.
func (c *Catalog) ScheduleInfos() []api.ScheduleInfo {
	c.mu.RLock()
	defer c.mu.RUnlock()
	infos := []api.ScheduleInfo{}
	for _, s := range c.schedules.items {
		info := DescribeSchedule("schedule", s.value)
		info.Integrity = s.files
		infos = append(infos, info)
	}
	for name, m := range c.models {
		if s, err := m.OwnSchedule(); err == nil {
			s.Name = name
			infos = append(infos, DescribeSchedule("model", s))
		}
	}
	c.broken.each(scheduleKind, func(name string, of api.Integrity) {
		infos = append(infos, api.ScheduleInfo{Name: name, Source: "schedule", Integrity: of})
	})
	slices.SortFunc(infos, func(a, b api.ScheduleInfo) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	return infos
}

// StoreSchedule writes a new schedule with what travels with it. Models' names are taken, too: they mean the models'
// own schedules.
func (c *Catalog) StoreSchedule(s Schedule, replace bool) error {
	c.changes.Lock()
	defer c.changes.Unlock()
	if err := c.FreeSchedule(s.Name, replace); err != nil {
		return err
	}
	return c.schedules.put(s.Name, s, func(folder string) error { return checkpoint.SaveSchedule(folder, s.Stored()) })
}

// FreeSchedule checks that a schedule may be stored under name.
func (c *Catalog) FreeSchedule(name string, replace bool) error {
	if err := CheckReserved(name); err != nil {
		return err
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if _, model := c.models[name]; model {
		return api.Errorf(api.NameTaken, "A model is called %q, and its name means its own schedule", name).
			WithHint("Choose another name.")
	}
	if c.schedules.taken(name) && !replace {
		return NameTaken("schedule", name)
	}
	return nil
}

// DeleteSchedule deletes a stored schedule.
func (c *Catalog) DeleteSchedule(name string) error {
	c.changes.Lock()
	defer c.changes.Unlock()
	c.mu.RLock()
	stored := c.schedules.taken(name)
	_, model := c.models[name]
	c.mu.RUnlock()
	switch {
	case model && !stored:
		return api.Errorf(api.BadRequest, "The schedule %q belongs to the model of that name", name).
			WithHint("It goes with DeleteModel.")
	case !stored:
		return api.NotFound(api.ScheduleNotFound, "schedule", name, c.scheduleNames())
	}
	return c.schedules.remove(name)
}
