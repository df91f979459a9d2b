package engine

import (
	"encoding/json"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/schedule"
)

// scheduleUpload collects a table of knots.
type scheduleUpload struct {
	e    *Engine
	req  api.PutSchedule
	in   api.Schema
	room room
	rows []schedule.TableRow
}

// putSchedule opens the upload of a schedule.
func (e *Engine) putSchedule(body json.RawMessage, in api.Schema) (Upload, error) {
	// A table takes ten times its room on the wire while it is checked, so it may have a tenth of it.
	u := &scheduleUpload{e: e, in: in, room: room{limit: e.cfg.MaxUploadBytes / 10}}
	if err := api.Decode(body, &u.req); err != nil {
		return nil, err
	}
	want := []api.Column{
		{Name: "label", Type: api.Int32}, {Name: "subspace", Type: api.Int32},
		{Name: "t", Type: api.Float64}, {Name: "g", Type: api.Float64},
	}
	if err := wantColumns(in, want, nil); err != nil {
		return nil, err
	}
	if err := u.chooseBasis(); err != nil {
		return nil, err
	}
	return u, e.freeSchedule(u.req.Name, u.req.Replace)
}

// chooseBasis checks the basis and its k. A DCT's k is checked against the images when the schedule meets a model.
func (u *scheduleUpload) chooseBasis() error {
	if u.req.Basis == "none" || u.req.Basis == "dct" {
		return nil
	}
	b, err := u.e.basisNamed(u.req.Basis)
	if err != nil {
		return err
	}
	if u.req.K != 0 && u.req.K != b.K() {
		return api.Errorf(api.BadRequest, "Basis %q has k = %d, not %d", u.req.Basis, b.K(), u.req.K)
	}
	u.req.K = b.K()
	return nil
}

// Write implements Upload.
func (u *scheduleUpload) Write(b api.Batch) error {
	if err := u.room.take(u.in, b); err != nil {
		return err
	}
	label, subspace := api.ColumnOf[int32](u.in, b, "label"), api.ColumnOf[int32](u.in, b, "subspace")
	t, g := api.ColumnOf[float64](u.in, b, "t"), api.ColumnOf[float64](u.in, b, "g")
	for i := range b.Rows {
		u.rows = append(u.rows, schedule.TableRow{Label: int(label[i]), Subspace: int(subspace[i]), T: t[i], G: g[i]})
	}
	return nil
}

// Commit implements Upload.
func (u *scheduleUpload) Commit() (int64, error) {
	s, err := schedule.FromTable(u.req.Basis, u.req.K, u.rows)
	if err != nil {
		return 0, explain(err)
	}
	if err := u.e.storeSchedule(u.req.Name, u.e.noted(s, schedule.Provenance{Kind: "upload"}), u.req.Replace); err != nil {
		return 0, err
	}
	return int64(len(u.rows)), nil
}

// Abort implements Upload.
func (u *scheduleUpload) Abort() {}
