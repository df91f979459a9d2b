package schedules

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/local"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/start"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// Export returns a schedule. Its JSON is its file.
func (k *Maker) Export(_ context.Context, req api.ExportSchedule) (*schedule.Schedule, error) {
	s, err := k.Catalog.ScheduleNamed(req.Schedule)
	return s.Schedule, err
}

// Import stores the schedule of a file, with its provenance.
func (k *Maker) Import(_ context.Context, req api.ImportSchedule) (info api.ScheduleInfo, err error) {
	c := k.Catalog
	s, err := schedule.Decode(bytes.NewReader(req.File))
	if err != nil {
		return info, err
	}
	s, b, err := onBasis(c, s, req.Basis)
	if err != nil {
		return info, err
	}
	if s.Provenance() == nil {
		s = c.WithProvenance(s, schedule.Provenance{Kind: "upload"})
	}
	parts := catalog.Parts{Schedule: s, Basis: b}
	if parts.Start, err = decodePart("start", req.Start, checkpoint.StartFile); err != nil {
		return info, err
	}
	if parts.Statistics, err = decodePart("statistics", req.Statistics, checkpoint.StatisticsFile); err != nil {
		return info, err
	}
	if parts.Fitted, err = decodePart("fitted", req.Fitted, checkpoint.FittedFile); err != nil {
		return info, err
	}
	if err := catalog.CheckParts(parts); err != nil {
		return info, err
	}
	return c.StoreSchedule(req.Name, parts, req.Replace)
}

// decodePart reads a part of a schedule from the base64 of its file; nil for none.
func decodePart[T any](field, text string, as checkpoint.Sidecar[T]) (*T, error) {
	if text == "" {
		return nil, nil
	}
	file, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, api.Errorf(api.BadRequest, "%s must be a file in base64: %v", field, err)
	}
	part, err := as.Decode(file)
	if err != nil {
		return nil, api.Errorf(api.BadSchedule, "%s cannot be used: %w", field, err)
	}
	return part, nil
}

// ExportStatistics returns the statistics of a schedule as their file.
func (k *Maker) ExportStatistics(_ context.Context, req api.ExportPart) (api.SchedulePart, error) {
	return exportPart(k.Catalog, req, checkpoint.StatisticsFile, "kind geodesic and statistics",
		func(s catalog.Schedule) *local.Statistics { return s.Statistics })
}

// ExportFitted returns the coefficients of a schedule as their file.
func (k *Maker) ExportFitted(_ context.Context, req api.ExportPart) (api.SchedulePart, error) {
	return exportPart(k.Catalog, req, checkpoint.FittedFile, "kind fit",
		func(s catalog.Schedule) *solver.Fitted { return s.Fitted })
}

// ExportStart returns the start of a schedule as its file.
func (k *Maker) ExportStart(_ context.Context, req api.ExportPart) (api.SchedulePart, error) {
	return exportPart(k.Catalog, req, checkpoint.StartFile, "kind start",
		func(s catalog.Schedule) *start.Start { return s.Start })
}

func exportPart[T any](
	c *catalog.Catalog, req api.ExportPart, as checkpoint.Sidecar[T], maker string, of func(catalog.Schedule) *T,
) (part api.SchedulePart, err error) {
	s, err := c.ScheduleNamed(req.Schedule)
	if err != nil {
		return part, err
	}
	v := of(s)
	if v == nil {
		return part, api.Errorf(api.BadRequest, "The schedule %q has no %s", s.Name, as.Name()).
			WithHint("Make one with MakeSchedule of %s.", maker)
	}
	if part.File, err = as.Encode(v); err != nil {
		return part, err
	}
	if len(part.File) > api.MaxPart {
		return part, api.Errorf(api.TooLarge, "%s of %q has %d bytes, a reply at most %d", as.Name(), s.Name,
			len(part.File), api.MaxPart).WithHint("Copy it from the schedule's folder.")
	}
	part.Hash = fmt.Sprintf("%x", sha256.Sum256(part.File))
	return part, nil
}

// onBasis returns an imported schedule on a stored basis, and that basis. An empty name means the basis of the
// schedule's family. If that is not a stored one, the basis is nil, and is checked against the images when the schedule
// is used with a model.
func onBasis(c *catalog.Catalog, s *schedule.Schedule, name string) (*schedule.Schedule, *basis.Basis, error) {
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
	b, err := c.Basis(family.Basis)
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
	s, err = s.WithBasis(family.Basis, b.K())
	return s, b, err
}
