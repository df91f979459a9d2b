// Package jsonerror words errors of encoding/json for people who know JSON and not Go.
package jsonerror

import (
	"cmp"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
)

// Text returns an error's text. If a value had the wrong type, it says "FIELD must be a list, got number" in place of
// encoding/json's own text, which names types of Go.
func Text(err error) string {
	text := err.Error()
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return text
	}
	t := wrong.Type
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	got, _, _ := strings.Cut(wrong.Value, " ")
	return strings.Replace(text, wrong.Error(), cmp.Or(wrong.Field, "it")+" must be "+number(t)+", got "+got, 1)
}

// number is Wanted, and tells whole numbers from others.
func number(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint64:
		return "a whole number"
	}
	return Wanted(t)
}

// Wanted names the JSON values that fit a Go type: "text", "true or false", "a list", "an object" or "a number".
func Wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return "a number"
}
