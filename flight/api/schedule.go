package api

import (
	"encoding/json"
)

// DefaultT is EDM's end of time, σ = 80 as a variance.
const DefaultT = 6400

// ScheduleRef names a schedule: a stored one, a model (its own schedule), "edm", or {"edm":{"T":6400}}. The zero value
// means the model's own, where a model is at hand.
type ScheduleRef struct {
	Name string
	T    float64 // of "edm": the variance at the end
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

// checkT wants an end of time above EDM's smallest σ² and far below overflow.
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

// NewSchedule says where a new schedule is stored.
type NewSchedule struct {
	Name    string `json:"name" name:"new"` // name of the new schedule; required
	Replace bool   `json:"replace"`         // replace a schedule of that name
}

// Target implements ScheduleKind.
func (r NewSchedule) Target() NewSchedule { return r }

// checkEnds checks the end of time, 0 where it was left out, and the variance at its beginning.
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

// ExportSchedule answers with a schedule as its file: every parameter or knot, the energy density where there is one,
// and the provenance.
type ExportSchedule struct {
	Schedule ScheduleRef `json:"schedule"` // a schedule's or model's name, edm, or {"edm":{"T":400}}; required
}

// ImportSchedule stores a schedule file.
type ImportSchedule struct {
	Name string          `json:"name" name:"new"` // name of the new schedule; required
	File json.RawMessage `json:"file"`            // a JSON object, as ExportSchedule answers; required
	// a stored basis that takes the place of the file's own; default the one that the file names
	Basis string `json:"basis"`
	Start string `json:"start,omitempty"` // the file of a start, in base64, as ExportStart answers
	// the file of statistics, in base64, as ExportStatistics answers
	Statistics string `json:"statistics,omitempty"`
	Fitted     string `json:"fitted,omitempty"` // the file of coefficients, in base64, as ExportFitted answers
	Replace    bool   `json:"replace"`          // replace a schedule of that name
}

// ExportPart answers with a part of a schedule that has a file of its own: its start (ExportStart), its statistics
// (ExportStatistics), or its fitted coefficients (ExportFitted).
type ExportPart struct {
	Schedule ScheduleRef `json:"schedule"` // name of the schedule; required
}

// MaxPart bounds the bytes of a part's file in one reply.
const MaxPart = 64 << 20

// SchedulePart is the reply of ExportStart, ExportStatistics and ExportFitted.
type SchedulePart struct {
	Hash string `json:"hash"` // SHA-256 of the file
	File []byte `json:"file"` // a safetensors file, in base64; docs/wire.md has its tensors
}
