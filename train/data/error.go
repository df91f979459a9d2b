package data

import (
	"fmt"
	"strings"
)

// Error says what is wrong with images, and where.
type Error struct {
	File  string // at fault; empty where the images came from no file
	Entry string // of the file: an image of an archive, an array, a column; may be empty
	Row   int    // image at fault, counted from 0; −1 where none is to blame
	Msg   string
	Err   error // the cause; may be nil
}

// Error implements the error interface.
func (e *Error) Error() string {
	var s strings.Builder
	s.WriteString("data: ")
	for _, place := range []string{e.File, e.Entry} {
		if place != "" {
			s.WriteString(place + ": ")
		}
	}
	if e.Row >= 0 {
		fmt.Fprintf(&s, "row %d: ", e.Row)
	}
	return s.String() + e.Msg
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

func failf(row int, format string, args ...any) error {
	return &Error{Row: row, Msg: fmt.Sprintf(format, args...)}
}
