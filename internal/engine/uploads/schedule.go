package uploads

import (
	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/input"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// scheduleUpload collects a table of knots.
type scheduleUpload struct {
	catalog *catalog.Catalog
	req     api.PutSchedule
	in      api.Schema
	rows    []schedule.TableRow

	family schedule.Family
	basis  *basis.Basis // dense one of the family, if it is at hand
}

// Schedule opens the upload of a schedule.
func Schedule(c *catalog.Catalog, budget *Budget, req api.PutSchedule, in api.Schema) (api.Upload, error) {
	u := &scheduleUpload{catalog: c, req: req, in: in}
	want := []api.Column{
		{Name: "label", Type: api.Int32},
		{Name: "subspace", Type: api.Int32},
		{Name: "t", Type: api.Float64},
		{Name: "g", Type: api.Float64},
	}
	if err := input.Want(in, want, nil); err != nil {
		return nil, err
	}
	if err := u.chooseBasis(); err != nil {
		return nil, err
	}
	// What a table takes while it is checked is within the limit.
	limit := budget.Upload / scheduleCost
	return budget.bound(u, in, req.Rows, limit, scheduleCost), c.FreeSchedule(u.req.Name, u.req.Replace)
}

// chooseBasis checks the basis. What a formula gives is checked against the images when the schedule meets a model, and
// so is the basis of a model that has learned its own.
func (u *scheduleUpload) chooseBasis() error {
	u.family = schedule.Family{Basis: u.req.Basis, K: u.req.K, Cuts: u.req.Cuts}
	if err := catalog.CheckCuts(u.req.Basis, u.req.Cuts); err != nil || !catalog.StoredByName(u.req.Basis) {
		return err
	}
	var err error
	if u.basis, err = u.catalog.Basis(u.req.Basis); err != nil {
		return err
	}
	if u.req.K != 0 && u.req.K != u.basis.K() {
		return api.Errorf(api.BadRequest, "Basis %q has k = %d, not %d", u.req.Basis, u.basis.K(), u.req.K)
	}
	u.family.K = u.basis.K()
	return nil
}

// Write implements api.Upload.
func (u *scheduleUpload) Write(b api.Batch) error {
	label, err := input.Int32s(u.in, b, "label", int64(len(u.rows)))
	if err != nil {
		return err
	}
	subspace, err := input.Int32s(u.in, b, "subspace", int64(len(u.rows)))
	if err != nil {
		return err
	}
	t, g := api.ColumnOf[float64](u.in, b, "t"), api.ColumnOf[float64](u.in, b, "g")
	for i := range b.Rows {
		u.rows = append(u.rows, schedule.TableRow{Label: int(label[i]), Subspace: int(subspace[i]), T: t[i], G: g[i]})
	}
	return nil
}

// Commit implements api.Upload.
func (u *scheduleUpload) Commit() (int64, error) {
	s, err := schedule.FromTable(u.family, u.rows)
	if err != nil {
		return 0, err
	}
	s = u.catalog.Signed(s, schedule.Provenance{Kind: "upload"})
	stored := catalog.Schedule{Schedule: s, Name: u.req.Name, Basis: u.basis}
	if err := u.catalog.StoreSchedule(stored, u.req.Replace); err != nil {
		return 0, err
	}
	return int64(len(u.rows)), nil
}

// Abort implements api.Upload.
func (u *scheduleUpload) Abort() {}

// scheduleCost is the number of bytes of memory that the upload takes for each one on the wire.
const scheduleCost = 10
