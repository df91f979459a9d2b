package runs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/base/setting"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
	"github.com/anisoflight/anisoflight/train/passes"
)

// Create makes a run of a configuration, whose model, data set, schedule and basis must exist and fit.
func (s *Runs) Create(ctx context.Context, req api.CreateRun, progress func(api.Meta)) (info api.RunInfo, err error) {
	cfg, err := readConfig(req.Config)
	if err != nil {
		return info, err
	}
	if cfg.Precision == "" {
		cfg.Precision = string(s.cfg.Precision)
	}
	if err := s.free(req); err != nil { // before the work, and again below
		return info, err
	}
	src, err := s.sources(ctx, cfg, progress)
	if err != nil {
		return info, err
	}
	s.changes.Lock()
	defer s.changes.Unlock()
	if err := s.free(req); err != nil {
		return info, err
	}
	fresh, err := train.New(cfg, src)
	if err != nil {
		return info, err
	}
	var seconds float64
	if cfg.Model != "" {
		err = s.cfg.Batcher.Take(ctx, func() error {
			seconds, _ = fresh.Seconds(ctx) // unknown if the device lacks the memory
			return nil
		})
	}
	var r *Run
	if err == nil {
		r, err = s.place(ctx, req, fresh, seconds, fresh.Config().Notes(src))
	}
	if err != nil {
		fresh.Close()
		return info, err
	}
	return r.infoWithConfig(), nil
}

// place stores a new run and lists it. Its folder appears whole, and replaces that of a run of its name.
func (s *Runs) place(ctx context.Context, req api.CreateRun, fresh training, seconds float64, notes []string,
) (*Run, error) {
	r := s.newRun(req.Name)
	r.status = status{
		State: Created, Created: time.Now().UTC(), Memory: memoryOf(fresh), Parameters: fresh.ParamCount(),
		Seconds: seconds, Notes: notes,
	}
	r.cfg, r.training, r.rowsRead, r.files = fresh.Config(), fresh, true, api.Integrity{State: api.Intact}
	state, err := fresh.State(ctx)
	if err != nil {
		return nil, err
	}
	if r.config, err = json.Marshal(r.cfg); err != nil {
		return nil, err
	}
	if r.keeper.status, err = r.status.encode(); err != nil {
		return nil, err
	}
	place := func() error {
		began := time.Now()
		err := atomicdir.Assemble(r.folder, req.Replace, func(dir string) error {
			if err := checkpoint.SaveRun(StatePath(dir), PreviousPath(dir), state); err != nil {
				return err
			}
			return atomicdir.WriteFile(StatusPath(dir), r.keeper.status)
		})
		if err != nil {
			return err
		}
		r.keeper.cost, r.keeper.endedAt = time.Since(began), time.Now()
		r.startLoop()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.runs[req.Name] = r
		return nil
	}
	if old, _ := s.Named(req.Name); old != nil {
		return r, old.replace(ctx, place)
	}
	return r, place()
}

// free checks that a run may be created under a name. Any folder occupies its name.
func (s *Runs) free(req api.CreateRun) error {
	if err := catalog.CheckReserved(req.Name); err != nil {
		return err
	}
	if req.Replace {
		return nil
	}
	if _, err := os.Lstat(filepath.Join(s.root(), req.Name)); err == nil { // listed or not
		return catalog.NameTaken("run", req.Name)
	}
	return nil
}

// sources returns what a configuration names, and makes the basis of its family if that is made of the data set.
func (s *Runs) sources(ctx context.Context, cfg train.Config, progress func(api.Meta)) (src train.Sources, err error) {
	for _, f := range []struct{ name, value string }{{"stage", cfg.Stage}, {"dataset", cfg.Dataset}} {
		if f.value == "" {
			return src, api.Errorf(api.BadRequest, "%s is missing", f.name)
		}
	}
	if cfg, err = cfg.Resolve(); err != nil { // before any work
		return src, err
	}
	if src, err = s.images(ctx, cfg); err != nil {
		return src, err
	}
	if cfg.Model != "" {
		m, err := s.cfg.Catalog.Model(cfg.Model)
		if err != nil {
			return src, err
		}
		if src.Model, err = m.ReadWithValues(); err != nil {
			return src, err
		}
	}
	if net := src.Network(cfg); net != nil { // whose basis is made of the images that it sees
		if _, src.Dataset, err = train.InUnits(net, src.Dataset); err != nil {
			return src, err
		}
	}
	if err := addSchedule(&src, s.cfg.Catalog, cfg); err != nil {
		return src, err
	}
	src.Basis, err = s.familyBasis(ctx, cfg, src, progress)
	return src, err
}

// addSchedule adds the schedule that a configuration names, if any, to src.
func addSchedule(src *train.Sources, c *catalog.Catalog, cfg train.Config) error {
	if cfg.Schedule == "" {
		return nil
	}
	s, err := c.ScheduleNamed(api.ScheduleRef{Name: cfg.Schedule, T: cmp.Or(cfg.T, api.DefaultT)})
	src.Schedule, src.ScheduleBasis = s.Schedule, s.Basis
	return err
}

// images returns the data set that a configuration names, and the devices.
func (s *Runs) images(ctx context.Context, cfg train.Config) (src train.Sources, err error) {
	src.World = s.cfg.World
	if src.Device, err = s.cfg.Device(); err != nil {
		return src, err
	}
	if src.Dataset, err = s.cfg.Catalog.Dataset(cfg.Dataset); err != nil {
		return src, err
	}
	return src, src.Dataset.Check(ctx) // before a step holds the device
}

// familyBasis returns the basis of a run's family: that of the schedule or model that the run starts from, a stored
// one, or one that it makes of the run's data set. It is nil if a formula gives the basis.
func (s *Runs) familyBasis(
	ctx context.Context, cfg train.Config, src train.Sources, progress func(api.Meta),
) (*basis.Basis, error) {
	family := cfg.Family
	hasBasis := func(sched *schedule.Schedule, b *basis.Basis) bool {
		return sched != nil && b != nil && sched.Family().Basis == family.Basis && (family.K == 0 || family.K == b.K())
	}
	switch {
	case basis.ByFormula(family.Basis):
		return nil, nil
	case hasBasis(src.Schedule, src.ScheduleBasis):
		return src.ScheduleBasis, nil
	case src.Model != nil && hasBasis(src.Model.Schedule, src.Model.Basis):
		return src.Model.Basis, nil
	case catalog.StoredByName(family.Basis):
		return s.cfg.Catalog.Basis(family.Basis)
	}
	d, _ := basis.Lookup(family.Basis)
	b, _, err := passes.PCA(ctx, src.Dataset, passes.PCASettings{
		K: family.K, PerClass: d.PerClass, Classes: src.Classes(cfg),
		Progress: api.ThrottledProgress(progress),
	})
	if field, ok := errors.AsType[*setting.Error](err); ok && field.Field == "k" {
		err = &setting.Error{Field: "family.k", Msg: field.Msg}
	}
	return b, err
}
