package catalog

import (
	"errors"
	"os"
	"slices"
	"strings"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// CheckReserved returns an error for the names of built-in schedules and bases, which nothing stored may take.
func CheckReserved(name string) error {
	reserved := append([]string{"edm"}, basis.Names(nil)...)
	if slices.Contains(reserved, name) {
		return api.Errorf(api.BadRequest, "name must not be one of the reserved names %s, got %q",
			strings.Join(reserved, " "), name)
	}
	return nil
}

// NameTaken returns the error of a name that is in use.
func NameTaken(what, name string) error {
	return api.Errorf(api.NameTaken, "A %s is already called %q", what, name).
		WithHint("Choose another name, or set replace.")
}

// notes strips the paths that file errors carry: clients need not know where the server keeps things.
func notes(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}
