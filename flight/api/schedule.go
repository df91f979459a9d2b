package api

import (
	"encoding/json"
)

// DefaultT is the noise variance at the end of EDM's schedule, σ = 80.
const DefaultT = 6400

// ScheduleRef names a schedule: a stored one, a model, whose own schedule is meant, "edm", or {"edm":{"T":6400}}. The
// zero value means the schedule of the request's model.
type ScheduleRef struct {
	Name string
	T    float64 // for "edm": noise variance at the end
}

// Given reports whether the request names a schedule.
func (r ScheduleRef) Given() bool { return r.Name != "" }

// decodeStrictly takes a name, or {"edm":{"T":6400}}.
func (r *ScheduleRef) decodeStrictly(at place, v rawValue) error {
	*r = ScheduleRef{T: DefaultT}
	if v.Kind() == '"' {
		err := decodeJSON(v, at, &r.Name)
		if err == nil && r.Name == "" {
			return Errorf(BadRequest, "%s must not be empty", at)
		}
		return err
	}
	var form struct {
		EDM *struct {
			T *float64 `json:"T"`
		} `json:"edm"`
	}
	if v.Kind() != '{' {
		return wrongJSON(at, `a name or {"edm":{"T":6400}}`, v)
	}
	if err := decodeJSON(v, at, &form); err != nil {
		return err
	}
	if form.EDM == nil {
		return wrongJSON(at, `a name or {"edm":{"T":6400}}`, v)
	}
	r.Name = "edm"
	if form.EDM.T != nil {
		r.T = *form.EDM.T
	}
	return checkT(at.field("edm.T").String(), r.T)
}

// checkT checks that the variance at the end is above EDM's smallest σ² and far below overflow.
func checkT(path string, t float64) error {
	if !(t >= 1e-4 && t <= 1e12) {
		return Errorf(BadRequest, "%s must lie in 1e-4 … 1e12, got %g", path, t)
	}
	return nil
}

// MarshalJSON writes the form that decodes to r.
func (r ScheduleRef) MarshalJSON() ([]byte, error) {
	if r.Name == "edm" && r.T != DefaultT && r.T != 0 {
		return json.Marshal(map[string]any{"edm": map[string]any{"T": r.T}})
	}
	return json.Marshal(r.Name)
}

// NewSchedule has the name of a new schedule.
type NewSchedule struct {
	Name    string `json:"name" name:"new"` // name of the new schedule; required
	Replace bool   `json:"replace"`         // replace a schedule of that name
}

// Target implements ScheduleKind.
func (r NewSchedule) Target() NewSchedule { return r }

// checkEnds checks the noise variances at the end, 0 if it is missing, and at t = 0.
func checkEnds(t, g0 float64) error {
	if t != 0 {
		if err := checkT("T", t); err != nil {
			return err
		}
	}
	if !(g0 > 0) || t != 0 && g0 >= t {
		return Errorf(BadRequest, "g0 must lie between 0 and T, got %g", g0)
	}
	return nil
}

// ExportSchedule returns the file of a schedule: its parameters or knots, its energy density if it has one, and its
// provenance.
type ExportSchedule struct {
	// a schedule's or model's name, edm, or JSON such as {"edm":{"T":400}}; required
	Schedule ScheduleRef `json:"schedule"`
}

// ImportSchedule stores a schedule file.
type ImportSchedule struct {
	Name string          `json:"name" name:"new"` // name of the new schedule; required
	File json.RawMessage `json:"file"`            // the schedule file, as ExportSchedule returns it; required
	// name of a stored basis to use; default the one that the file names
	Basis   string `json:"basis"`
	Start   string `json:"start,omitempty"` // file of a start in base64, as ExportStart returns it
	Replace bool   `json:"replace"`         // replace a schedule of that name
}

// ExportStart returns the file of a schedule's start.
type ExportStart struct {
	Schedule ScheduleRef `json:"schedule"` // name of the schedule; required
}

// MaxPart is the largest size of a start's file.
const MaxPart = 64 << 20

// StartFile is the reply of ExportStart.
type StartFile struct {
	Hash string `json:"hash"` // SHA-256 of the file
	File []byte `json:"file"` // a safetensors file, in base64; docs/wire.md has its tensors
}
