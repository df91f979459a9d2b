package api

import (
	"regexp"
	"slices"
	"strings"
)

var namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// reserved names mean built-in schedules and bases everywhere, so nothing stored may take them.
var reserved = []string{"edm", "none", "dct", "pca", "pca_per_class", "haar"}

// CheckName tells whether a new model, schedule, basis, data set or run may be called name; field is the request's field
// that holds it.
func CheckName(field, name string) error {
	switch {
	case name == "":
		return Errorf(BadRequest, "Field %q is missing", field)
	case !namePattern.MatchString(name):
		return Errorf(BadRequest, "Field %q is not a name: %s", field, describe(name)).
			WithHint("Names match [a-z0-9][a-z0-9._-]{0,63}.")
	case slices.Contains(reserved, name):
		return Errorf(BadRequest, "The name %q is reserved", name).WithHint("Choose another name.")
	}
	return nil
}

// need wants a field to be there.
func need(field, value string) error {
	if value == "" {
		return Errorf(BadRequest, "Field %q is missing", field)
	}
	return nil
}

// oneOf wants one of a few words.
func oneOf(field, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	return Errorf(BadRequest, "Field %q does not know %s", field, describe(value)).WithHint("Known: %s.", strings.Join(allowed, " "))
}

func atLeast(field string, value, least int) error {
	if value < least {
		return Errorf(BadRequest, "Field %q must be at least %d, not %d", field, least, value)
	}
	return nil
}

func positive(field string, value float64) error {
	if !(value > 0) {
		return Errorf(BadRequest, "Field %q must be positive, not %g", field, value)
	}
	return nil
}

// first gives the first error, if any.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
