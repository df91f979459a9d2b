package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/anisoflight/anisoflight/internal/base/jsonerror"
)

// rawValue is a JSON value that readJSON has checked.
type rawValue = jsontext.Value

// decoder is implemented by fields that accept more than one JSON form.
type decoder interface {
	decodeStrictly(at place, v rawValue) error
}

// decodeJSON sets *dst, over the values that it already holds, from the value at a place of the request.
func decodeJSON(v rawValue, at place, dst any) error {
	err := jsonv2.Unmarshal(v, dst, jsonv2.RejectUnknownMembers(true), jsonv2.WithUnmarshalers(jsonv2.JoinUnmarshalers(
		jsonv2.UnmarshalFromFunc(func(d *jsontext.Decoder, dst any) error { return decodeNull(d, at, dst) }),
		jsonv2.UnmarshalFromFunc(func(d *jsontext.Decoder, dst decoder) error {
			v, err := d.ReadValue()
			if err != nil {
				return err
			}
			return dst.decodeStrictly(at.within(d.StackPointer()), v.Clone())
		}),
		jsonv2.UnmarshalFromFunc(func(d *jsontext.Decoder, dst *uint64) error { return decodeSeed(d, dst) }),
		jsonv2.UnmarshalFromFunc(func(d *jsontext.Decoder, dst *json.RawMessage) error { return decodeRaw(d, at, dst) }),
	)))
	return explain(err, v, at)
}

// decodeNull leaves a field that is null as it is.
func decodeNull(d *jsontext.Decoder, at place, dst any) error {
	if d.PeekKind() != 'n' {
		return errors.ErrUnsupported
	}
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	if kind, _ := d.StackIndex(d.StackDepth()); kind == '{' {
		return nil
	}
	return wrongJSON(at.within(d.StackPointer()), jsonerror.Wanted(reflect.TypeOf(dst).Elem()), rawValue("null"))
}

// digits is what a uint64 may be as text.
var digits = regexp.MustCompile(`^"[0-9]{1,20}"$`)

// decodeSeed reads a uint64 that is text.
func decodeSeed(d *jsontext.Decoder, dst *uint64) error {
	if d.PeekKind() != '"' {
		return errors.ErrUnsupported
	}
	v, err := d.ReadValue()
	if err != nil {
		return err
	}
	text := v.Clone()
	if digits.Match(v) {
		v = v[1 : len(v)-1]
	}
	if *dst, err = strconv.ParseUint(string(v), 10, 64); err != nil {
		return &jsonv2.SemanticError{
			JSONPointer: d.StackPointer(), JSONKind: v.Kind(), JSONValue: text, GoType: reflect.TypeFor[uint64](), Err: err,
		}
	}
	return nil
}

// decodeRaw keeps an object as it is, with its fields sorted.
func decodeRaw(d *jsontext.Decoder, at place, dst *json.RawMessage) error {
	v, err := d.ReadValue()
	switch {
	case err != nil:
		return err
	case v.Kind() != '{':
		return wrongJSON(at.within(d.StackPointer()), "an object", v)
	}
	v = v.Clone()
	if err := v.Format(jsontext.ReorderRawObjects(true)); err != nil {
		return err
	}
	*dst = json.RawMessage(v)
	return nil
}

// explain returns the error of the contract for one of Unmarshal.
func explain(err error, v rawValue, at place) error {
	var own *Error
	var wrong *jsonv2.SemanticError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		return own
	case !errors.As(err, &wrong):
		return err
	case wrong.Err != nil && !errors.Is(wrong.Err, jsonv2.ErrUnknownName) && !isNumber(wrong.GoType):
		return wrong.Err // of a decoder
	}
	at = at.within(wrong.JSONPointer)
	value := valueAt(v, wrong.JSONPointer)
	switch {
	case errors.Is(wrong.Err, jsonv2.ErrUnknownName):
		return Errorf(BadRequest, "%s is not a field here", at).WithHint("Known: %s.",
			strings.Join(fieldNames(wrong.GoType), ", "))
	case !isNumber(wrong.GoType), wrong.JSONKind != '0' && wrong.GoType.Kind() != reflect.Uint64,
		wrong.JSONKind != '0' && !digits.Match(value):
		return wrongJSON(at, jsonerror.Wanted(wrong.GoType), value)
	case wrong.GoType.Kind() == reflect.Float64:
		return Errorf(BadRequest, "%s must be a number in range, got %s", at, describe(value))
	}
	if text := string(value); strings.ContainsAny(text, ".eE") {
		want := "a whole number"
		if x, _ := strconv.ParseFloat(text, 64); x == math.Trunc(x) { // see whole
			want += ", in digits alone above 2⁵³"
		}
		return wrongJSON(at, want, value)
	}
	switch {
	case wrong.GoType.Kind() == reflect.Uint64:
		return Errorf(BadRequest, "%s must lie in 0 … 2⁶⁴ − 1, got %s", at, describe(value))
	case wrong.GoType.Kind() == reflect.Int && value[0] != '-': // a size: well formed, but nobody could serve it
		return Errorf(TooLarge, "%s must be small enough to serve, got %s", at, describe(value))
	}
	return Errorf(BadRequest, "%s must be a number in range, got %s", at, describe(value))
}

// valueAt returns what stands at a pointer in a value.
func valueAt(v rawValue, at jsontext.Pointer) rawValue {
	if at == "" {
		return v
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(v))
	for {
		token, err := d.ReadToken()
		switch {
		case err != nil:
			return nil
		case d.StackPointer() != at:
			continue
		}
		if kind, n := d.StackIndex(d.StackDepth()); kind == '{' && n%2 == 1 { // the field's name
			v, _ := d.ReadValue()
			return v.Clone()
		}
		if token.Kind() == '"' {
			v, _ := jsontext.AppendQuote(nil, token.String())
			return v
		}
		return rawValue(token.String())
	}
}

func isNumber(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint64, reflect.Float64:
		return true
	}
	return false
}

// fieldNames lists the names of a struct's fields, those of embedded structs included.
func fieldNames(t reflect.Type) []string {
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// maxDepth bounds the nesting of a request.
const maxDepth = 32

// readJSON reads exactly one JSON value without repeated fields. Empty input is the empty object.
func readJSON(body []byte) (rawValue, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return rawValue("{}"), nil
	}
	if !utf8.Valid(body) {
		return nil, Errorf(BadRequest, "The request is not UTF-8 text")
	}
	var out bytes.Buffer
	out.Grow(len(body))
	d, e := jsontext.NewDecoder(bytes.NewBuffer(body)), jsontext.NewEncoder(&out)
	for {
		token, err := d.ReadToken()
		switch {
		case err != nil:
			return nil, syntaxError(err)
		case d.StackDepth() > maxDepth:
			return nil, Errorf(BadRequest, "%s must be nested at most %d deep", place{}.within(d.StackPointer()), maxDepth)
		case token.Kind() == '0':
			err = e.WriteValue(whole(token.String()))
		default:
			err = e.WriteToken(token)
		}
		switch {
		case err != nil:
			return nil, err
		case d.StackDepth() > 0:
			continue
		}
		if _, err := d.ReadToken(); !errors.Is(err, io.EOF) {
			return nil, Errorf(BadRequest, "The request holds more than one JSON value")
		}
		return rawValue(bytes.TrimSpace(out.Bytes())), nil
	}
}

// whole returns a whole number in digits alone: 8 for 8.0 and 8e0. Above 2⁵³ a double may not be the number that was
// meant, and stays as it is.
func whole(number string) rawValue {
	if x, err := strconv.ParseFloat(number, 64); err == nil && strings.ContainsAny(number, ".eE") &&
		x == math.Trunc(x) && math.Abs(x) <= 1<<53 {
		return strconv.AppendInt(nil, int64(x), 10)
	}
	return rawValue(number)
}

func syntaxError(err error) error {
	var wrong *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return Errorf(BadRequest, "The request's JSON ends too early")
	case !errors.As(err, &wrong):
		return err
	case errors.Is(wrong.Err, jsontext.ErrDuplicateName):
		return Errorf(BadRequest, "%s is given twice", place{}.within(wrong.JSONPointer))
	}
	return Errorf(BadRequest, "The request is not JSON: %w", wrong.Err)
}

// fieldsIn returns the fields of an object; none for another value.
func fieldsIn(v rawValue) map[string]rawValue {
	fields := map[string]rawValue{}
	if v.Kind() == '{' {
		if err := jsonv2.Unmarshal(v, &fields); err != nil {
			panic(err) // readJSON has checked it
		}
	}
	return fields
}

// objectOf returns the object that has these fields, sorted.
func objectOf(fields map[string]rawValue) rawValue {
	v, err := jsonv2.Marshal(fields, jsonv2.Deterministic(true))
	if err != nil {
		panic(err) // readJSON has checked them
	}
	return v
}

// describe names a JSON value for an error message, shortened.
func describe(v rawValue) string {
	switch v.Kind() {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case '"':
		if text, err := jsontext.AppendUnquote(nil, v); err == nil {
			return quoted(string(text))
		}
	}
	return shortened(string(v))
}

// quoted returns text in quotes, shortened.
func quoted(text string) string { return strconv.Quote(shortened(text)) }

// shortened returns text with at most mostQuoted characters, and "…" for the rest.
func shortened(text string) string { return cut(text, mostQuoted) }

// cut returns text with at most so many characters, and "…" for the rest.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	n := 0
	for i := range text {
		if n == most {
			return text[:i] + "…"
		}
		n++
	}
	return text
}

// place is where in a request a value stands: a path of fields and entries, empty for the request itself.
type place struct{ path string }

// field returns the place of an object's field. A dotted key is that of a field within a field.
func (p place) field(key string) place {
	if p.path == "" {
		return place{shortened(key)}
	}
	return place{p.path + "." + shortened(key)}
}

// within returns the place of what a pointer points to, in the value at p.
func (p place) within(pointer jsontext.Pointer) place {
	for token := range pointer.Tokens() {
		if _, err := strconv.Atoi(token); err == nil {
			p.path += "[" + token + "]"
		} else {
			p = p.field(token)
		}
	}
	return p
}

// plainPath is a path that can stand in a sentence as it is.
var plainPath = regexp.MustCompile(`^[A-Za-z0-9_.\[\]-]{1,80}$`)

// String returns the words for the part of a request that an error is about: its path, quoted and cut short where the
// caller's own keys are no words.
func (p place) String() string {
	switch {
	case p.path == "":
		return "The request"
	case plainPath.MatchString(p.path):
		return p.path
	}
	return quoted(p.path)
}

// wrongJSON returns the error of a value that is of another type than is wanted there.
func wrongJSON(at place, want string, v rawValue) error {
	return Errorf(BadRequest, "%s must be %s, got %s", at, want, describe(v))
}
