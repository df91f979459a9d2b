package gaussian

import "fmt"

// Error reports why data, a basis or settings were refused.
type Error struct {
	Field string // dataset, basis, grid, t, …
	Msg   string // what is wrong and what to do
}

// Error implements the error interface.
func (e *Error) Error() string { return "gaussian: " + e.Field + " " + e.Msg }

func failf(field, format string, args ...any) error {
	return &Error{Field: field, Msg: fmt.Sprintf(format, args...)}
}
