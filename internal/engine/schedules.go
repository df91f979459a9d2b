package engine

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// A stored schedule is a file, or a folder where it is on a basis that has to be kept with it.
const (
	scheduleSuffix       = ".json"
	scheduleFolderSuffix = ".schedule"
)

func (e *Engine) schedulePath(name string) string {
	return filepath.Join(e.folders.schedules, name+scheduleSuffix)
}

func (e *Engine) scheduleFolder(name string) string {
	return filepath.Join(e.folders.schedules, name+scheduleFolderSuffix)
}

// scanSchedules reads the stored schedules. Where a crash has left both a file and a folder, the folder counts.
func (e *Engine) scanSchedules() {
	for _, name := range storedNames(e.folders.schedules, scheduleSuffix) {
		text, err := os.ReadFile(e.schedulePath(name))
		if err == nil {
			var s *schedule.Schedule
			if s, err = schedule.Decode(bytes.NewReader(text)); err == nil {
				e.schedules[name] = namedSchedule{Schedule: s, name: name}
				continue
			}
		}
		e.log.Warn("schedule left out", "name", name, "error", err)
	}
	for _, name := range storedNames(e.folders.schedules, scheduleFolderSuffix) {
		s, b, err := checkpoint.LoadSchedule(e.scheduleFolder(name))
		if err != nil {
			e.log.Warn("schedule left out", "name", name, "error", err)
			continue
		}
		e.schedules[name] = namedSchedule{Schedule: s, name: name, basis: b}
	}
}

// edmSchedule is EDM's noise grid as a schedule between the default g_0 and T, shared by all classes.
func edmSchedule(T float64) (*schedule.Schedule, error) {
	theta, err := schedule.InitialTheta("edm", schedule.DefaultKnots, T, schedule.DefaultG0)
	if err != nil {
		return nil, api.Errorf(api.BadRequest, "There is no EDM schedule that ends at T = %g: %w", T, err)
	}
	return schedule.FromTheta(schedule.Family{Basis: "none"}, nil, [][]schedule.Theta{{theta}}, T, schedule.DefaultG0)
}

// namedSchedule is a schedule with where it came from.
type namedSchedule struct {
	*schedule.Schedule
	name  string
	basis *basis.Basis // that travels with it; nil where its family's name is enough
}

// scheduleNamed finds what a request calls a schedule: "edm", a stored one, or a model's own, which is "edm" for a model
// without.
func (e *Engine) scheduleNamed(ref api.ScheduleRef) (namedSchedule, error) {
	if ref.Name == "edm" {
		s, err := edmSchedule(ref.T)
		return namedSchedule{Schedule: s, name: "edm"}, err
	}
	e.mu.RLock()
	s, stored := e.schedules[ref.Name]
	m := e.models[ref.Name]
	e.mu.RUnlock()
	switch {
	case stored:
		return s, nil
	case m != nil:
		return m.ownSchedule()
	}
	return namedSchedule{}, api.Errorf(api.ScheduleNotFound, "No schedule is called %q", ref.Name).
		WithHint("There is edm, every model's own, and what was stored; ListSchedules tells them all.")
}

// describeSchedule says what lists say about s.
func describeSchedule(name, source string, s *schedule.Schedule) api.ScheduleInfo {
	family := s.Family()
	info := api.ScheduleInfo{Name: name, Source: source, T: s.T(), J: s.J(), PerClass: family.PerClass, Basis: family.Basis, K: family.K, Cuts: family.Cuts}
	for _, label := range s.Labels() {
		info.Labels = append(info.Labels, int32(label))
	}
	if p := s.Provenance(); p != nil {
		info.Provenance = p
	}
	return info
}

func (e *Engine) scheduleInfos() []api.ScheduleInfo {
	e.mu.RLock()
	defer e.mu.RUnlock()
	infos := []api.ScheduleInfo{}
	for name, s := range e.schedules {
		infos = append(infos, describeSchedule(name, "schedule", s.Schedule))
	}
	for name, m := range e.models {
		if s, err := m.ownSchedule(); err == nil {
			infos = append(infos, describeSchedule(name, "model", s.Schedule))
		}
	}
	slices.SortFunc(infos, func(a, b api.ScheduleInfo) int { return bytes.Compare([]byte(a.Name), []byte(b.Name)) })
	return infos
}

// storeSchedule writes a new schedule with the dense basis that it is on, nil where its family says it all. Models' names
// are taken, too: they mean the models' own schedules.
func (e *Engine) storeSchedule(name string, s *schedule.Schedule, b *basis.Basis, replace bool) error {
	e.changes.Lock()
	defer e.changes.Unlock()
	if err := e.freeSchedule(name, replace); err != nil {
		return err
	}
	if err := e.writeSchedule(name, s, b); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.schedules[name] = namedSchedule{Schedule: s, name: name, basis: b}
	return nil
}

// writeSchedule writes the schedule's file or folder and then removes the other. A crash between leaves the old schedule
// or the new one, since a folder counts before a file.
func (e *Engine) writeSchedule(name string, s *schedule.Schedule, b *basis.Basis) error {
	if b != nil {
		if err := checkpoint.SaveSchedule(e.scheduleFolder(name), s, b); err != nil {
			return err
		}
		return removeFile(e.schedulePath(name))
	}
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := writeFile(e.schedulePath(name), text); err != nil {
		return err
	}
	return removeTree(e.scheduleFolder(name))
}

// freeSchedule tells whether a schedule may be stored under name.
func (e *Engine) freeSchedule(name string, replace bool) error {
	if err := checkReserved(name); err != nil {
		return err
	}
	e.mu.RLock()
	defer e.mu.RUnlock()
	if _, model := e.models[name]; model {
		return api.Errorf(api.NameTaken, "A model is called %q, and its name means its own schedule", name).WithHint("Choose another name.")
	}
	if _, taken := e.schedules[name]; taken && !replace {
		return nameTaken("schedule", name)
	}
	return nil
}

// nameTaken is the answer to a name that is in use.
func nameTaken(what, name string) error {
	return api.Errorf(api.NameTaken, "A %s is already called %q", what, name).WithHint("Choose another name, or set replace.")
}

func (e *Engine) removeSchedule(name string) error {
	e.changes.Lock()
	defer e.changes.Unlock()
	e.mu.RLock()
	_, stored := e.schedules[name]
	_, model := e.models[name]
	e.mu.RUnlock()
	switch {
	case model && !stored:
		return api.Errorf(api.BadRequest, "The schedule %q belongs to the model of that name", name).WithHint("It goes with DeleteModel.")
	case !stored:
		return api.Errorf(api.ScheduleNotFound, "No schedule is called %q", name)
	}
	if err := removeFile(e.schedulePath(name)); err != nil {
		return err
	}
	if err := removeTree(e.scheduleFolder(name)); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.schedules, name)
	return nil
}

// modelNames lists the models, sorted.
func (e *Engine) modelNames() []string {
	e.mu.RLock()
	defer e.mu.RUnlock()
	return slices.Sorted(maps.Keys(e.models))
}
