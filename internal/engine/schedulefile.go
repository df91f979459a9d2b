package engine

import (
	"bytes"
	"context"
	"encoding/base64"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/checkpoint"
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
	from, err := importedStart(req.Start)
	if err != nil {
		return nil, err
	}
	stored := catalog.Schedule{Schedule: s, Name: req.Name, Basis: b, Start: from}
	if stored.Statistics, err = importedStatistics(req.Statistics); err != nil {
		return nil, err
	}
	if err := stored.CheckStatistics(); err != nil {
		return nil, err
	}
	if err := e.catalog.StoreSchedule(stored, req.Replace); err != nil {
		return nil, err
	}
	return catalog.DescribeSchedule("schedule", stored), nil
}

// importedStart reads the base64 of a start's file; nil for none.
func importedStart(text string) (*catalog.Start, error) {
	if text == "" {
		return nil, nil
	}
	file, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, api.Errorf(api.BadRequest, "start must be the base64 of a start's file: %v", err)
	}
	s, err := checkpoint.DecodeStart(file)
	if err != nil {
		return nil, api.Errorf(api.BadSchedule, "The start is refused: %w", err)
	}
	return catalog.HashedStart(s)
}

// importedStatistics reads the base64 of a file of statistics; nil for none.
func importedStatistics(text string) (*catalog.Statistics, error) {
	if text == "" {
		return nil, nil
	}
	file, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, api.Errorf(api.BadRequest, "statistics must be the base64 of a file of statistics: %v", err)
	}
	s, err := checkpoint.DecodeStatistics(file)
	if err != nil {
		return nil, api.Errorf(api.BadSchedule, "The statistics are refused: %w", err)
	}
	return catalog.HashedStatistics(s)
}

// exportStatistics returns the statistics of a schedule as their file.
func (e *Engine) exportStatistics(_ context.Context, req api.ExportPart) (any, error) {
	s, err := e.catalog.ScheduleNamed(req.Schedule)
	if err != nil {
		return nil, err
	}
	if s.Statistics == nil {
		return nil, api.Errorf(api.BadRequest, "The schedule %q carries no statistics", s.Name).
			WithHint("Make one that does with MakeSchedule of kind geodesic and statistics.")
	}
	file, err := checkpoint.EncodeStatistics(s.Statistics.Statistics)
	if err != nil {
		return nil, err
	}
	if len(file) > api.MaxPart {
		return nil, api.Errorf(api.TooLarge, "The statistics of %q have %d bytes, a reply at most %d", s.Name, len(file),
			api.MaxPart).WithHint("Copy statistics.safetensors from the schedule's folder.")
	}
	return api.SchedulePart{Hash: s.Statistics.Hash, File: file}, nil
}

// exportStart returns the start of a schedule as its file.
func (e *Engine) exportStart(_ context.Context, req api.ExportPart) (any, error) {
	s, err := e.catalog.ScheduleNamed(req.Schedule)
	if err != nil {
		return nil, err
	}
	from, err := s.StartFor(api.StartMatched)
	if err != nil {
		return nil, api.Errorf(api.BadRequest, "The schedule %q carries no start", s.Name).
			WithHint("Make one that does with MakeSchedule of kind start.")
	}
	file, err := checkpoint.EncodeStart(from.Start)
	if err != nil {
		return nil, err
	}
	if len(file) > api.MaxPart {
		return nil, api.Errorf(api.TooLarge, "The start of %q has %d bytes, a reply at most %d", s.Name, len(file),
			api.MaxPart).WithHint("Copy start.safetensors from the schedule's folder.")
	}
	return api.SchedulePart{Hash: from.Hash, File: file}, nil
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
