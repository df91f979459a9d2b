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
	if made := s.Sampler(); made != nil {
		return info, api.Errorf(api.BadSchedule, "The file is that of a sampler, %s, which 0.1 stored as a schedule",
			made.Solver).
			WithHint("A server makes a plan of it in a data folder of 0.1. Remove sampler to keep the paths alone.")
	}
	if s.Provenance() == nil {
		s = c.WithProvenance(s, schedule.Provenance{Kind: "upload"})
	}
	parts := catalog.Parts{Schedule: s, Basis: b}
	if parts.Start, err = decodeStart(req.Start); err != nil {
		return info, err
	}
	return c.StoreSchedule(req.Name, parts, req.Replace)
}

// decodeStart reads a start from the base64 of its file; nil for none.
func decodeStart(text string) (*start.Start, error) {
	if text == "" {
		return nil, nil
	}
	file, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, api.Errorf(api.BadRequest, "start must be a file in base64: %v", err)
	}
	law, err := checkpoint.StartFile.Decode(file)
	if err != nil {
		return nil, api.Errorf(api.BadSchedule, "start cannot be used: %w", err)
	}
	return law, nil
}

// ExportStart returns the start of a schedule as its file.
func (k *Maker) ExportStart(_ context.Context, req api.ExportStart) (out api.StartFile, err error) {
	s, err := k.Catalog.ScheduleNamed(req.Schedule)
	if err != nil {
		return out, err
	}
	if s.Start == nil {
		return out, api.Errorf(api.BadRequest, "The schedule %q has no %s", s.Name, checkpoint.StartFile.Name()).
			WithHint("Make one with MakeSchedule of kind start.")
	}
	if out.File, err = checkpoint.StartFile.Encode(s.Start); err != nil {
		return out, err
	}
	if len(out.File) > api.MaxPart {
		return out, api.Errorf(api.TooLarge, "The start of %q has %d bytes, a reply at most %d", s.Name, len(out.File),
			api.MaxPart).WithHint("Copy it from the schedule's folder.")
	}
	out.Hash = fmt.Sprintf("%x", sha256.Sum256(out.File))
	return out, nil
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
