package api

import "encoding/json"

// ExportSchedule answers with a schedule as its file: every parameter or knot, the energy density where there is one,
// and the provenance.
type ExportSchedule struct {
	Schedule ScheduleRef `json:"schedule"`
}

// SetDefaults implements Request.
func (r *ExportSchedule) SetDefaults() { *r = ExportSchedule{} }

// Validate implements Request.
func (r *ExportSchedule) Validate() error { return need("schedule", r.Schedule.Name) }

// ImportSchedule stores a schedule file.
type ImportSchedule struct {
	Name    string          `json:"name"`
	File    json.RawMessage `json:"file"`  // a JSON object, as ExportSchedule answers
	Basis   string          `json:"basis"` // a stored basis that takes the place of the file's own; default: the one it names
	Replace bool            `json:"replace"`
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
