package catalog

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
)

// A stored schedule is a file, or a folder where a basis, a start or statistics have to be kept with it.
const (
	scheduleSuffix       = ".json"
	scheduleFolderSuffix = ".schedule"
)

func (c *Catalog) schedulePath(name string) string {
	return filepath.Join(c.folders.Schedules, name+scheduleSuffix)
}

func (c *Catalog) scheduleFolder(name string) string {
	return filepath.Join(c.folders.Schedules, name+scheduleFolderSuffix)
}

// scanSchedules reads the stored schedules. Where a crash has left both a file and a folder, the folder counts.
func (c *Catalog) scanSchedules() {
	for _, name := range StoredNames(c.folders.Schedules, scheduleSuffix) {
		text, err := os.ReadFile(c.schedulePath(name))
		if err == nil {
			var s *schedule.Schedule
			if s, err = schedule.Decode(bytes.NewReader(text)); err == nil {
				c.schedules[name] = Schedule{Schedule: s, Name: name}
				continue
			}
		}
		c.log.Warn("schedule left out", "name", name, "error", err)
	}
	for _, name := range StoredNames(c.folders.Schedules, scheduleFolderSuffix) {
		s, err := checkpoint.LoadSchedule(c.scheduleFolder(name))
		if err != nil {
			c.log.Warn("schedule left out", "name", name, "error", err)
			continue
		}
		from, err := HashedStart(s.Start)
		if err != nil {
			c.log.Warn("schedule left out", "name", name, "error", err)
			continue
		}
		gains, err := HashedStatistics(s.Statistics)
		if err != nil {
			c.log.Warn("schedule left out", "name", name, "error", err)
			continue
		}
		c.schedules[name] = Schedule{Schedule: s.Schedule, Name: name, Basis: s.Basis, Start: from, Statistics: gains}
	}
}

// EDM returns EDM's noise grid as a schedule between the default g_0 and T, shared by all classes.
func EDM(T float64) (*schedule.Schedule, error) {
	theta, err := schedule.InitialTheta("edm", schedule.DefaultKnots, T, schedule.DefaultG0)
	if err != nil {
		return nil, api.Errorf(api.BadRequest, "There is no EDM schedule that ends at T = %g: %w", T, err)
	}
	return schedule.FromTheta(schedule.Family{Basis: "none"}, nil, [][]schedule.Theta{{theta}}, T, schedule.DefaultG0)
}

// Schedule is a schedule with where it came from.
type Schedule struct {
	*schedule.Schedule
	Name  string
	Basis *basis.Basis // that travels with it; nil where its family's name is enough
	Start *Start       // law of the data that sampling starts from; nil for noise alone
	// Statistics are those of a denoiser, for the solver local; nil where there are none.
	Statistics *Statistics
}

// ScheduleNamed finds what a request calls a schedule: "edm", a stored one, or a model's own, which is "edm" for a
// model without.
func (c *Catalog) ScheduleNamed(ref api.ScheduleRef) (Schedule, error) {
	if ref.Name == "edm" {
		s, err := EDM(ref.T)
		return Schedule{Schedule: s, Name: "edm"}, err
	}
	c.mu.RLock()
	s, stored := c.schedules[ref.Name]
	m := c.models[ref.Name]
	c.mu.RUnlock()
	switch {
	case stored:
		return s, nil
	case m != nil:
		return m.OwnSchedule()
	}
	return Schedule{}, api.Errorf(api.ScheduleNotFound, "No schedule is called %q", ref.Name).
		WithHint("There is edm, every model's own, and what was stored; ListSchedules tells them all.")
}

// DescribeSchedule says what lists say about s.
func DescribeSchedule(source string, s Schedule) api.ScheduleInfo {
	family := s.Family()
	info := api.ScheduleInfo{
		Name: s.Name, Source: source, T: s.T(), J: s.J(), PerClass: family.PerClass,
		Basis: family.Basis, K: family.K, Cuts: family.Cuts,
	}
	for _, label := range s.Labels() {
		info.Labels = append(info.Labels, int32(label))
	}
	if p := s.Provenance(); p != nil {
		info.Provenance = p
	}
	info.Start, info.Statistics = s.Start.Describe(), s.Statistics.Describe()
	return info
}

// ScheduleInfos describes the schedules, those of models included.
func (c *Catalog) ScheduleInfos() []api.ScheduleInfo {
	c.mu.RLock()
	defer c.mu.RUnlock()
	infos := []api.ScheduleInfo{}
	for _, s := range c.schedules {
		infos = append(infos, DescribeSchedule("schedule", s))
	}
	for name, m := range c.models {
		if s, err := m.OwnSchedule(); err == nil {
			s.Name = name
			infos = append(infos, DescribeSchedule("model", s))
		}
	}
	slices.SortFunc(infos, func(a, b api.ScheduleInfo) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	return infos
}

// StoreSchedule writes a new schedule with what travels with it. Models' names are taken, too: they mean the models' own
// schedules.
func (c *Catalog) StoreSchedule(s Schedule, replace bool) error {
	c.changes.Lock()
	defer c.changes.Unlock()
	if err := c.FreeSchedule(s.Name, replace); err != nil {
		return err
	}
	if err := c.writeSchedule(s); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.schedules[s.Name] = s
	return nil
}

// writeSchedule writes the schedule's file or folder and then removes the other. A crash between leaves the old
// schedule or the new one, since a folder counts before a file.
func (c *Catalog) writeSchedule(s Schedule) error {
	if s.Basis != nil || s.Start != nil || s.Statistics != nil {
		stored := checkpoint.Schedule{Schedule: s.Schedule, Basis: s.Basis}
		if s.Start != nil {
			stored.Start = s.Start.Start
		}
		if s.Statistics != nil {
			stored.Statistics = s.Statistics.Statistics
		}
		if err := checkpoint.SaveSchedule(c.scheduleFolder(s.Name), stored); err != nil {
			return err
		}
		return atomicdir.Remove(c.schedulePath(s.Name))
	}
	text, err := json.Marshal(s.Schedule)
	if err != nil {
		return err
	}
	if err := atomicdir.WriteFile(c.schedulePath(s.Name), text); err != nil {
		return err
	}
	return atomicdir.Remove(c.scheduleFolder(s.Name))
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
	if _, taken := c.schedules[name]; taken && !replace {
		return NameTaken("schedule", name)
	}
	return nil
}

// DeleteSchedule deletes a stored schedule.
func (c *Catalog) DeleteSchedule(name string) error {
	c.changes.Lock()
	defer c.changes.Unlock()
	c.mu.RLock()
	_, stored := c.schedules[name]
	_, model := c.models[name]
	c.mu.RUnlock()
	switch {
	case model && !stored:
		return api.Errorf(api.BadRequest, "The schedule %q belongs to the model of that name", name).
			WithHint("It goes with DeleteModel.")
	case !stored:
		return api.Errorf(api.ScheduleNotFound, "No schedule is called %q", name)
	}
	if err := atomicdir.Remove(c.schedulePath(name)); err != nil {
		return err
	}
	if err := atomicdir.Remove(c.scheduleFolder(name)); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.schedules, name)
	return nil
}
