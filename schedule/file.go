package schedule

import (
	"encoding/json"
	"io"
)

// MarshalJSON writes the schedule file.
func (s *Schedule) MarshalJSON() ([]byte, error) { return json.Marshal(s.family) }

// Decode reads a schedule file: one JSON object, nothing after it.
func Decode(r io.Reader) (*Schedule, error) {
	return nil, failf(-1, "not a schedule file")
}
