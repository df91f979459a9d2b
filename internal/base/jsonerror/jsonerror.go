// Package jsonerror rewrites errors of encoding/json for readers who know JSON and not Go.
package jsonerror

import (
	"cmp"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
)

// Text returns an error's text. If a value has the wrong type, it says "FIELD must be a list, got number" in place of
// encoding/json's text, which names Go types.
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
	want := TypeName(t)
	switch t.Kind() {
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint64:
		want = "a whole number"
	}
	got, _, _ := strings.Cut(wrong.Value, " ")
	return strings.Replace(text, wrong.Error(), cmp.Or(wrong.Field, "it")+" must be "+want+", got "+got, 1)
}

// TypeName names the JSON values of a Go type: "text", "true or false", "a list", "an object" or "a number".
func TypeName(t reflect.Type) string {
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
