package schedule

import (
	"errors"
	"fmt"
)

// Error reports why a schedule, a path or a table was refused.
type Error struct {
	Row int    // row of the offending table, counted from 0; −1 where no row is to blame
	Msg string // what is wrong and what to do
}

// Error implements the error interface.
func (e *Error) Error() string {
	if e.Row < 0 {
		return "schedule: " + e.Msg
	}
	return fmt.Sprintf("schedule: row %d: %s", e.Row, e.Msg)
}

// LabelError is returned where a per-class schedule has no row for a label.
type LabelError struct {
	Label int
}

// Error implements the error interface.
func (e *LabelError) Error() string {
	if e.Label < 0 {
		return "schedule: this schedule has one row per class and needs a label; none was given"
	}
	return fmt.Sprintf("schedule: label %d has no row in this schedule", e.Label)
}

// ErrNoEnergy is returned where a schedule is asked for its path length but
// carries no energy density.
var ErrNoEnergy = errors.New("schedule: no energy density is stored with this schedule; make one with a geodesic " +
	"pass over a data set")

func failf(row int, format string, args ...any) error {
	return &Error{Row: row, Msg: fmt.Sprintf(format, args...)}
}
