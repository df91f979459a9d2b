package catalog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
)

// What the names of stored schedules end in: a schedule is a folder; older programs have stored a file where nothing
// goes with it.
const (
	ScheduleFolderSuffix = ".schedule"
	ScheduleFileSuffix   = ".json"
)

// scheduleFile is the place of a schedule that an older program has stored.
func (c *Catalog) scheduleFile(name string) string {
	return filepath.Join(c.folders.Schedules, name+ScheduleFileSuffix)
}

func (c *Catalog) scheduleFolder(name string) string {
	return filepath.Join(c.folders.Schedules, name+ScheduleFolderSuffix)
}

// scanSchedules reads the stored schedules. Where a crash has left both a file and a folder, the folder counts.
func (c *Catalog) scanSchedules() {
	for _, name := range StoredNames(c.folders.Schedules, ScheduleFileSuffix) {
		if exists(c.scheduleFolder(name)) {
			continue
		}
		text, err := os.ReadFile(c.scheduleFile(name))
		var s *schedule.Schedule
		if err == nil {
			s, err = checkpoint.DecodeSchedule(text)
		}
		if err != nil {
			c.leaveOut(scheduleKind, name, err)
			continue
		}
		c.schedules[name] = Schedule{Schedule: s, Name: name, files: api.Integrity{State: api.Unverified}}
	}
	for _, name := range StoredNames(c.folders.Schedules, ScheduleFolderSuffix) {
		parts, err := checkpoint.LoadSchedule(c.scheduleFolder(name))
		var s Schedule
		if err == nil {
			s, err = NewSchedule(name, parts)
		}
		if err != nil {
			c.leaveOut(scheduleKind, name, err)
			continue
		}
		s.files = ReadWhole(c.scheduleFolder(name))
		c.schedules[name] = s
	}
}

// EDM returns EDM's noise grid as a schedule between the default g_0 and T, shared by all classes.
func EDM(T float64) (*schedule.Schedule, error) { return EDMFrom(T, schedule.DefaultG0) }

// EDMFrom is EDM from the variance g0.
func EDMFrom(T, g0 float64) (*schedule.Schedule, error) {
	theta, err := schedule.InitialTheta("edm", schedule.DefaultKnots, T, g0)
	if err != nil {
		return nil, api.Errorf(api.BadRequest, "There is no EDM schedule that ends at T = %g: %w", T, err)
	}
	return schedule.FromTheta(schedule.Family{Basis: "none"}, nil, [][]schedule.Theta{{theta}}, T, g0)
}

// Schedule is a schedule with where it came from.
type Schedule struct {
	*schedule.Schedule
	Name  string
	Basis *basis.Basis // that travels with it; nil where its family's name is enough
	Start *Start       // law of the data that sampling starts from; nil for noise alone
	// Statistics are those of a denoiser, for the solver local; nil where there are none.
	Statistics *Statistics
	Fitted     *solver.Fitted // coefficients of the solver fitted; nil for none
	files      api.Integrity
}

// NewSchedule returns a schedule with what travels with it, under a name.
func NewSchedule(name string, of checkpoint.Schedule) (Schedule, error) {
	s := Schedule{Schedule: of.Schedule, Name: name, Basis: of.Basis, Fitted: of.Fitted}
	var err error
	if s.Start, err = hashedStart(of.Start); err != nil {
		return s, err
	}
	s.Statistics, err = hashedStatistics(of.Statistics)
	return s, err
}

// Stored returns what NewSchedule was given.
func (s Schedule) Stored() checkpoint.Schedule {
	of := checkpoint.Schedule{Schedule: s.Schedule, Basis: s.Basis, Fitted: s.Fitted}
	if s.Start != nil {
		of.Start = s.Start.Start
	}
	if s.Statistics != nil {
		of.Statistics = s.Statistics.Statistics
	}
	return of
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
	damage := cmp.Or(c.broken.find(scheduleKind, ref.Name), c.broken.find(modelKind, ref.Name))
	c.mu.RUnlock()
	switch {
	case stored:
		return s, nil
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
	s, stored := c.schedules[ref.Name]
	if !stored {
		return c.models[ref.Name]
	}
	p := s.Provenance()
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
	names := slices.AppendSeq([]string{"edm"}, maps.Keys(c.schedules))
	return slices.Compact(slices.Sorted(slices.Values(slices.AppendSeq(names, maps.Keys(c.models)))))
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
		if p.Few != nil && json.Unmarshal(p.Few, &info.Few) != nil {
			info.Few = nil // of an imported file, whose report is another's
		}
		p.Few = nil
		info.Provenance = p
	}
	if of := s.Sampler(); of != nil {
		info.Sampler = &api.ScheduleSampler{Solver: of.Solver, Order: of.Order, NFE: of.NFE}
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
		info := DescribeSchedule("schedule", s)
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
	if err := checkpoint.SaveSchedule(c.scheduleFolder(s.Name), s.Stored()); err != nil {
		return err
	}
	if err := atomicdir.Remove(c.scheduleFile(s.Name)); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s.files = ReadWhole(c.scheduleFolder(s.Name))
	c.schedules[s.Name] = s
	c.broken.mended(scheduleKind, s.Name)
	return nil
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
	if _, taken := c.schedules[name]; (taken || c.broken.find(scheduleKind, name) != nil) && !replace {
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
	stored = stored || c.broken.find(scheduleKind, name) != nil
	_, model := c.models[name]
	c.mu.RUnlock()
	switch {
	case model && !stored:
		return api.Errorf(api.BadRequest, "The schedule %q belongs to the model of that name", name).
			WithHint("It goes with DeleteModel.")
	case !stored:
		return api.NotFound(api.ScheduleNotFound, "schedule", name, c.scheduleNames())
	}
	if err := atomicdir.Remove(c.scheduleFile(name)); err != nil { // first: where it is left, it would be the schedule
		return err
	}
	if err := atomicdir.Remove(c.scheduleFolder(name)); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.schedules, name)
	c.broken.mended(scheduleKind, name)
	return nil
}

// OwnSchedule returns the schedule that the model's name means.
func (m *Model) OwnSchedule() (Schedule, error) {
	if m.Schedule != nil {
		return Schedule{Schedule: m.Schedule, Name: m.Name, Basis: m.Basis}, nil
	}
	return m.edm(0)
}

// edm returns EDM's schedule over the model's noise levels, up to T where that is not 0.
func (m *Model) edm(T float64) (Schedule, error) {
	if T == 0 {
		T = m.Shape.Range.T()
	}
	s, err := EDMFrom(T, m.Shape.Range.G0())
	return Schedule{Schedule: s, Name: "edm"}, err
}
