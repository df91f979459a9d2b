package api

import "encoding/json"

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
	Replace    bool   `json:"replace"` // replace a schedule of that name
}

// ExportPart answers with a part of a schedule that has a file of its own: its start (ExportStart), or its statistics
// (ExportStatistics).
type ExportPart struct {
	Schedule ScheduleRef `json:"schedule"` // name of the schedule; required
}

// MaxPart bounds the bytes of a part's file in one reply.
const MaxPart = 64 << 20

// SchedulePart is the reply of ExportStart and of ExportStatistics.
type SchedulePart struct {
	Hash string `json:"hash"` // SHA-256 of the file
	File []byte `json:"file"` // a safetensors file, in base64; docs/wire.md has its tensors
}
