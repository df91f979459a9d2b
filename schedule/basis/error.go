package basis

import "fmt"

// Error says why a basis, or a request to one, was refused.
type Error struct {
	Label int // class whose vectors are at fault, −1 for a shared basis
	Row   int // vector within the label, −1 where none is to blame
	Msg   string
}

// Error implements the error interface.
func (e *Error) Error() string {
	switch {
	case e.Row < 0:
		return "basis: " + e.Msg
	case e.Label < 0:
		return fmt.Sprintf("basis: vector %d: %s", e.Row, e.Msg)
	}
	return fmt.Sprintf("basis: label %d, vector %d: %s", e.Label, e.Row, e.Msg)
}

func failf(label, row int, format string, args ...any) error {
	return &Error{Label: label, Row: row, Msg: fmt.Sprintf(format, args...)}
}
