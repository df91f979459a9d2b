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

func (r *ScheduleRef) decodeTree(at *place, v tree) error {
	*r = ScheduleRef{T: DefaultT}
	if name, ok := v.(string); ok {
		r.Name = name
		if name == "" {
			return Errorf(BadRequest, "%s must not be empty", at)
		}
		return nil
	}
	var form struct {
		EDM *struct {
			T *float64 `json:"T"`
		} `json:"edm"`
	}
	if _, ok := v.(map[string]any); !ok {
		return wrongType(at, `a name or {"edm":{"T":6400}}`, v)
	}
	if err := decode(v, at, &form); err != nil {
		return err
	}
	if form.EDM == nil {
		return wrongType(at, `a name or {"edm":{"T":6400}}`, v)
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

// UnmarshalJSON reads a reference strictly.
func (r *ScheduleRef) UnmarshalJSON(body []byte) error {
	v, err := parse(body)
	if err != nil {
		return err
	}
	return r.decodeTree((*place)(nil).field("schedule"), v)
}

// ExportSchedule answers with a schedule as its file: every parameter or knot, the energy density where there is one,
// and
// the provenance.
type ExportSchedule struct {
	Schedule ScheduleRef `json:"schedule"`
}

// SetDefaults implements Request.
func (r *ExportSchedule) SetDefaults() { *r = ExportSchedule{} }

// Validate implements Request.
func (r *ExportSchedule) Validate() error { return need("schedule", r.Schedule.Name) }

// ImportSchedule stores a schedule file.
type ImportSchedule struct {
	Name string          `json:"name"`
	File json.RawMessage `json:"file"` // a JSON object, as ExportSchedule answers
	// a stored basis that takes the place of the file's own; default: the one it names
	Basis string `json:"basis"`
	Start string `json:"start,omitempty"` // the file of a start, in base64, as ExportStart answers
	// the file of statistics, in base64, as ExportStatistics answers
	Statistics string `json:"statistics,omitempty"`
	Replace    bool   `json:"replace"`
}

// SetDefaults implements Request.
func (r *ImportSchedule) SetDefaults() { *r = ImportSchedule{} }

// Validate implements Request.
func (r *ImportSchedule) Validate() error {
	return first(CheckName("name", r.Name), need("file", string(r.File)))
}

// Basis reads the vectors of P_1 back: of a stored basis, or of the one that a schedule has.
//
// Rows out, sorted by label: label int32 (−1 shared), vector fixed_shape_tensor float64 with dim_names ["H","W"].
type Basis struct {
	Basis    string      `json:"basis,omitempty"`
	Schedule ScheduleRef `json:"schedule,omitzero"`
}

// SetDefaults implements Request.
func (r *Basis) SetDefaults() { *r = Basis{} }

// Validate implements Request.
func (r *Basis) Validate() error {
	if (r.Basis == "") == !r.Schedule.Given() {
		return Errorf(BadRequest, "basis and schedule must not both be given, nor both be left out")
	}
	return nil
}
