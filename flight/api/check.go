package api

import (
	"regexp"
	"strings"

	"github.com/anisoflight/anisoflight/internal/base/suggest"
)

var namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// CheckName returns an error unless name is well formed as the name of a model, schedule, basis, data set or run; field
// is the request's field that holds it. Which names are reserved, the engine knows.
func CheckName(field, name string) error {
	switch {
	case name == "":
		return Errorf(BadRequest, "%s is missing", field)
	case !namePattern.MatchString(name):
		return Errorf(BadRequest, "%s must match [a-z0-9][a-z0-9._-]{0,63}, got %s", field, quoted(name))
	}
	return nil
}

// NotFound returns the error of a name that nothing has, with the nearest of those there are, and the first of them.
func NotFound(code Code, what, name string, there []string) *Error {
	const most = 20
	hint := suggest.DidYouMean(name, there)
	if hint != "" {
		hint = "D" + hint[1:] + " "
	}
	switch {
	case len(there) == 0:
		hint += "There is none so far."
	case len(there) > most:
		hint += "There are: " + strings.Join(there[:most], " ") + " …"
	default:
		hint += "There are: " + strings.Join(there, " ") + "."
	}
	return Errorf(code, "No %s is called %s", what, quoted(name)).WithHint("%s", hint)
}

// need wants a field to be there.
func need(field, value string) error {
	if value == "" {
		return Errorf(BadRequest, "%s is missing", field)
	}
	return nil
}

// join returns the name of a field within a field of a request's own; path is empty for the request itself.
func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// oneOf wants one of a few words.
func oneOf(field, value string, allowed ...string) error {
	if wrong := suggest.OneOf(value, allowed); wrong != "" {
		return Errorf(BadRequest, "%s %s", field, wrong)
	}
	return nil
}

func atLeast(field string, value, least int) error {
	if value < least {
		return Errorf(BadRequest, "%s must be at least %d, got %d", field, least, value)
	}
	return nil
}

// within wants a number in a range; a larger one is TOO_LARGE.
func within(field string, value, least, most int) error {
	if value > most {
		return Errorf(TooLarge, "%s must be at most %d, got %d", field, most, value)
	}
	return atLeast(field, value, least)
}

// first returns the first error, if any.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// checkCuts checks nested bands. Whether another basis takes any, the engine knows.
func checkCuts(basis string, k int, cuts []int) error {
	switch {
	case cuts == nil:
		return nil
	case len(cuts) == 0:
		return Errorf(BadRequest, "cuts must not be empty")
	case basis == "none":
		return Errorf(BadRequest, "cuts must be left out for basis none")
	case k != 0:
		return Errorf(BadRequest, "k and cuts must not both be given")
	}
	for i, c := range cuts {
		if c < 1 || i > 0 && c <= cuts[i-1] {
			return Errorf(BadRequest, "cuts must increase from 1 on, got %v", cuts)
		}
	}
	return nil
}
