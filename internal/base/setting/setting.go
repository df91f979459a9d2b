// Package setting reads the tags of settings, and formats the errors about them:
//
//	default:"256"      the value of a field that is zero
//	min:"2" max:"4096" the bounds of a number; given:"2" in place of min if the number may be omitted
//	above:"0"          a number must be greater
//	below:"1"          a number must be less
//	oneof:"a b"        the words that a text may be
package setting

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"

	"github.com/anisoflight/anisoflight/internal/base/suggest"
)

// Error is the error of a field of a configuration.
type Error struct {
	Field    string // name in files and requests
	Msg      string // follows the name, such as "must be positive, got -3"
	TooLarge bool   // a whole number above its maximum
}

// Error implements the error interface.
func (e *Error) Error() string { return e.Field + " " + e.Msg }

// Errorf returns the *[Error] of a field.
func Errorf(field, format string, args ...any) error {
	return &Error{Field: field, Msg: fmt.Sprintf(format, args...)}
}

// OneOf returns the *[Error] of a field whose value is not allowed, or nil.
func OneOf(field, value string, allowed ...string) error {
	if wrong := suggest.OneOf(value, allowed); wrong != "" {
		return &Error{Field: field, Msg: wrong}
	}
	return nil
}

// SetDefault sets a field that is zero to the default of its tag, if it has one.
func SetDefault(v reflect.Value, tag reflect.StructTag) {
	text, ok := tag.Lookup("default")
	switch {
	case !ok || !v.IsZero():
	case v.Kind() == reflect.String:
		v.SetString(text)
	case v.Kind() == reflect.Slice:
		v.Set(reflect.ValueOf(strings.Fields(text)))
	default:
		if err := json.Unmarshal([]byte(text), v.Addr().Interface()); err != nil {
			panic(err) // of the tag
		}
	}
}

// CheckNumber returns the error of a number that its tags do not allow, or nil. A zero that is not above the tag above
// and has no default is allowed: the number is omitted.
func CheckNumber(field string, v reflect.Value, tag reflect.StructTag) *Error {
	var x float64
	switch {
	case v.CanInt():
		x = float64(v.Int())
	case v.CanFloat():
		x = v.Float()
	}
	violates := func(text string, wrong func(bound float64) bool) bool {
		if text == "" {
			return false
		}
		bound, err := strconv.ParseFloat(text, 64)
		return err == nil && wrong(bound)
	}
	above, below, most := tag.Get("above"), tag.Get("below"), tag.Get("max")
	least := cmp.Or(tag.Get("min"), tag.Get("given"))
	fail := func(allowed string) *Error {
		return &Error{Field: field, Msg: fmt.Sprintf("must be %s, got %v", allowed, v)}
	}
	low := violates(above, func(bound float64) bool { return x <= bound })
	_, always := tag.Lookup("default")
	switch {
	case !Finite(x):
		return fail("finite")
	case low && x == 0 && !always:
	case low && below == "":
		return fail("positive")
	case low, violates(below, func(bound float64) bool { return x >= bound }):
		return fail("between " + above + " and " + below)
	case violates(least, func(bound float64) bool { return x < bound }):
		return fail("at least " + least)
	case violates(most, func(bound float64) bool { return x > bound }):
		large := fail("at most " + most)
		large.TooLarge = v.CanInt()
		return large
	}
	return nil
}

// SetDefaults sets the fields of the struct that settings points to.
func SetDefaults(settings any) {
	for f, v := range reflect.ValueOf(settings).Elem().Fields() {
		SetDefault(v, f.Tag)
	}
}

// Check returns the *[Error] of the first field whose tags do not allow its value, or nil. It skips zero fields.
// settings points to a struct. The tag oneof may also name one of the lists.
func Check(settings any, lists map[string][]string) error {
	for f, v := range reflect.ValueOf(settings).Elem().Fields() {
		name, _, _ := strings.Cut(cmp.Or(f.Tag.Get("json"), f.Name), ",")
		if v = reflect.Indirect(v); !v.IsValid() || v.IsZero() {
			continue
		}
		if words := f.Tag.Get("oneof"); words != "" {
			allowed, named := lists[words]
			if !named {
				allowed = strings.Fields(words)
			}
			if err := OneOf(name, v.String(), allowed...); err != nil {
				return err
			}
		} else if err := CheckNumber(name, v, f.Tag); err != nil {
			return err
		}
	}
	return nil
}

// Positive reports whether x is positive and finite.
func Positive(x float64) bool { return x > 0 && Finite(x) }

// Finite reports whether x is neither infinite nor NaN.
func Finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
