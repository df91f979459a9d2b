package contents

import (
	"context"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// scheduleCost is the number of bytes of memory for each byte of an uploaded schedule.
const scheduleCost = 10

// PutSchedule opens the upload of a schedule, a table of knots.
func (c *Contents) PutSchedule(_ context.Context, req api.PutSchedule, in api.Schema) (*api.Upload, error) {
	err := tables.CheckColumns(in, []api.Column{
		{Name: "label", Type: api.Int32},
		{Name: "subspace", Type: api.Int32},
		{Name: "t", Type: api.Float64},
		{Name: "g", Type: api.Float64},
	}, nil)
	if err != nil {
		return nil, err
	}
	family, b, err := c.family(req)
	if err != nil {
		return nil, err
	}
	var rows []schedule.TableRow
	write := func(b api.Batch) error {
		label, err := tables.Int32s(in, b, "label", int64(len(rows)))
		if err != nil {
			return err
		}
		subspace, err := tables.Int32s(in, b, "subspace", int64(len(rows)))
		if err != nil {
			return err
		}
		t, g := api.ColumnOf[float64](in, b, "t"), api.ColumnOf[float64](in, b, "g")
		for i := range b.Rows {
			rows = append(rows, schedule.TableRow{Label: int(label[i]), Subspace: int(subspace[i]), T: t[i], G: g[i]})
		}
		return nil
	}
	commit := func() (int64, error) {
		s, err := schedule.FromTable(family, rows)
		if err != nil {
			return 0, err
		}
		s = c.Catalog.WithProvenance(s, schedule.Provenance{Kind: "upload"})
		_, err = c.Catalog.StoreSchedule(req.Name, catalog.Parts{Schedule: s, Basis: b}, req.Replace)
		return int64(len(rows)), err
	}
	// The limit includes the memory of the check.
	upload := api.Upload{Write: write, Commit: commit}
	return c.limitedUpload(upload, in, req.Rows, c.MaxUploadBytes/scheduleCost, scheduleCost),
		c.Catalog.FreeSchedule(req.Name, req.Replace)
}

// family returns the family of a schedule and its stored basis, if it has one. Any other basis is checked against the
// images when the schedule is used with a model.
func (c *Contents) family(req api.PutSchedule) (f schedule.Family, b *basis.Basis, err error) {
	f = schedule.Family{Basis: req.Basis, K: req.K, Cuts: req.Cuts}
	if d, _ := basis.Lookup(req.Basis); req.Cuts != nil && !d.Cuts {
		return f, nil, api.Errorf(api.BadRequest, "cuts must be left out for basis %q; only %s takes it", req.Basis,
			basis.Nested())
	}
	if !catalog.StoredByName(req.Basis) {
		return f, nil, nil
	}
	if b, err = c.Catalog.Basis(req.Basis); err != nil {
		return f, nil, err
	}
	if req.K != 0 && req.K != b.K() {
		return f, nil, api.Errorf(api.BadRequest, "Basis %q has k = %d, not %d", req.Basis, b.K(), req.K)
	}
	f.K = b.K()
	return f, b, nil
}
