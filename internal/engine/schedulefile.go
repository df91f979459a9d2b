package engine

import (
	"bytes"
	"context"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// exportSchedule returns the schedule file of a schedule.
func (e *Engine) exportSchedule(_ context.Context, req api.ExportSchedule) (any, error) {
	s, err := e.catalog.ScheduleNamed(req.Schedule)
	if err != nil {
		return nil, err
	}
	return s.Schedule, nil // which writes itself as the file
}

// importSchedule stores what a schedule file holds, with its provenance.
func (e *Engine) importSchedule(_ context.Context, req api.ImportSchedule) (any, error) {
	s, err := schedule.Decode(bytes.NewReader(req.File))
	if err != nil {
		return nil, err
	}
	s, b, err := e.onBasis(s, req.Basis)
	if err != nil {
		return nil, err
	}
	if s.Provenance() == nil {
		s = e.catalog.Signed(s, schedule.Provenance{Kind: "upload"})
	}
	if err := e.catalog.StoreSchedule(req.Name, s, b, req.Replace); err != nil {
		return nil, err
	}
	return catalog.DescribeSchedule(req.Name, "schedule", s), nil
}

// onBasis returns an imported schedule on the stored basis of this name, or of its family's own if the name is empty,
// and that basis; nil for one that is not stored: by formula, or a model's own. Those are checked against the images
// when the schedule meets a model.
func (e *Engine) onBasis(s *schedule.Schedule, name string) (*schedule.Schedule, *basis.Basis, error) {
	family := s.Family()
	if basis.ByFormula(family.Basis) && name != "" {
		return nil, nil, api.Errorf(api.BadRequest, "The schedule's basis is %s, which needs no stored one", family.Basis).
			WithHint("Leave out basis.")
	}
	if name != "" {
		family.Basis = name
	}
	if !catalog.StoredByName(family.Basis) {
		return s, nil, nil
	}
	b, err := e.catalog.Basis(family.Basis)
	if err != nil {
		return nil, nil, err
	}
	if b.J() != s.J() {
		return nil, nil, api.Errorf(api.BadSchedule, "The schedule has %d subspaces, its basis %q splits images into %d",
			s.J(), family.Basis, b.J())
	}
	if family.K != 0 && family.K != b.K() {
		return nil, nil, api.Errorf(api.BadSchedule, "The schedule is made for k = %d, basis %q has k = %d", family.K,
			family.Basis, b.K())
	}
	s, err = s.On(family.Basis, b.K())
	return s, b, err
}
