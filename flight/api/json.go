package api

import (
	"bytes"
	"cmp"
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
	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/anisoflight/anisoflight/internal/base/jsonerror"
)

// rawValue is a JSON value that readJSON has checked.
type rawValue = jsontext.Value

// decoder is implemented by fields that accept more than one JSON form.
type decoder interface {
	decodeStrictly(at place, v rawValue) error
}

// decodeJSON decodes the value at a place of the request into *dst, whose fields keep their values if v lacks them.
func decodeJSON(v rawValue, at place, dst any) error {
	err := jsonv2.Unmarshal(v, dst, jsonv2.RejectUnknownMembers(true), jsonv2.WithUnmarshalers(jsonv2.JoinUnmarshalers(
		jsonv2.UnmarshalFromFunc(func(d *jsontext.Decoder, dst any) error { return decodeScalar(d, at, dst) }),
		jsonv2.UnmarshalFromFunc(func(d *jsontext.Decoder, dst decoder) error {
			v, err := d.ReadValue()
			if err != nil {
				return err
			}
			return dst.decodeStrictly(at.within(d.StackPointer()), v.Clone())
		}),
	)))
	var own *Error
	var wrong *jsonv2.SemanticError
	switch {
	case errors.As(err, &own):
		return own
	case !errors.As(err, &wrong):
		return err
	case errors.Is(wrong.Err, jsonv2.ErrUnknownName):
		var known []string
		for _, f := range Fields(reflect.Zero(wrong.GoType).Interface()) {
			known = append(known, f.Name)
		}
		slices.Sort(known)
		return Errorf(BadRequest, "%s is not a field here", at.within(wrong.JSONPointer)).WithHint("Known: %s.",
			strings.Join(known, ", "))
	}
	return cmp.Or(wrong.Err, err)
}

// kindNames names the kinds of JSON values as jsonerror.TypeName does.
var kindNames = map[jsontext.Kind]string{
	'"': "text", 't': "true or false", 'f': "true or false", '[': "a list", '{': "an object",
}

// decodeScalar reads numbers, skips null fields, and refuses values of the wrong type. Package json decodes everything
// else.
func decodeScalar(d *jsontext.Decoder, at place, dst any) error {
	v, kind := reflect.ValueOf(dst).Elem(), d.PeekKind()
	want := jsonerror.TypeName(v.Type())
	if v.Type() == reflect.TypeFor[json.RawMessage]() {
		want = "an object"
	}
	_, several := dst.(decoder)
	several = several || v.Type() == reflect.TypeFor[rawValue]() || v.Kind() == reflect.Pointer
	if kind != 'n' && (several || v.Kind() == reflect.Interface || kindNames[kind] == want) {
		return errors.ErrUnsupported
	}
	text, err := d.ReadValue()
	if err != nil {
		return err
	}
	inside, _ := d.StackIndex(d.StackDepth())
	switch {
	case kind == 'n' && inside == '{':
		return nil
	case kind != 'n' && want == "a number":
		return decodeNumber(text, v, func() place { return at.within(d.StackPointer()) })
	}
	return wrongJSON(at.within(d.StackPointer()), want, text)
}

// digits matches a uint64 that is written as text.
var digits = regexp.MustCompile(`^"[0-9]{1,20}"$`)

// decodeNumber decodes a number. A uint64 may be a string, for languages whose numbers are doubles.
func decodeNumber(text rawValue, v reflect.Value, at func() place) (err error) {
	number := string(text)
	if v.Kind() == reflect.Uint64 && digits.MatchString(number) {
		number = number[1 : len(number)-1]
	} else if text.Kind() != '0' {
		return wrongJSON(at(), "a number", text)
	}
	if v.CanFloat() {
		x, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return Errorf(BadRequest, "%s must be a number in range, got %s", at(), describe(text))
		}
		v.SetFloat(x)
		return nil
	}
	if strings.ContainsAny(number, ".eE") {
		want := "a whole number"
		if x, _ := strconv.ParseFloat(number, 64); x == math.Trunc(x) { // see whole
			want += ", in digits alone above 2⁵³"
		}
		return wrongJSON(at(), want, text)
	}
	if v.CanUint() {
		x, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			return Errorf(BadRequest, "%s must lie in 0 … 2⁶⁴ − 1, got %s", at(), describe(text))
		}
		v.SetUint(x)
		return nil
	}
	x, err := strconv.ParseInt(number, 10, v.Type().Bits())
	switch {
	case err == nil:
		v.SetInt(x)
		return nil
	case v.Kind() == reflect.Int && number[0] != '-': // a size: well formed, but nobody could serve it
		return Errorf(TooLarge, "%s must be small enough to serve, got %s", at(), describe(text))
	}
	return Errorf(BadRequest, "%s must be a number in range, got %s", at(), describe(text))
}

// embedding returns the JSON of a request with the fields of an embedded value next to its own.
func embedding(request any) ([]byte, error) {
	return jsonv2.Marshal(request, jsonv1.DefaultOptionsV1())
}

// maxDepth is the deepest nesting of a request.
const maxDepth = 32

// readJSON reads exactly one JSON value and refuses repeated fields. Empty input is the empty object.
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

// whole writes a whole number in digits: 8 for 8.0 and 8e0. It leaves numbers above 2⁵³, which a double may not hold
// exactly, as they are.
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

// fieldsIn returns the fields of an object, none if v is not an object.
func fieldsIn(v rawValue) map[string]rawValue {
	fields := map[string]rawValue{}
	if v.Kind() == '{' {
		if err := jsonv2.Unmarshal(v, &fields); err != nil {
			panic(err) // readJSON has checked it
		}
	}
	return fields
}

// objectOf returns the object of these fields, sorted.
func objectOf(fields map[string]rawValue) rawValue {
	v, err := jsonv2.Marshal(fields, jsonv2.Deterministic(true))
	if err != nil {
		panic(err) // readJSON has checked them
	}
	return v
}

// describe returns a JSON value in words for an error message, shortened.
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

// quoted returns text shortened and in quotes.
func quoted(text string) string { return strconv.Quote(shortened(text)) }

// shortened returns text cut to mostQuoted characters.
func shortened(text string) string { return cut(text, mostQuoted) }

// cut returns text with at most most characters, and "…" in place of the rest.
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

// place is the path of a value in a request: fields and entries, empty for the request itself.
type place struct{ path string }

// field returns the place of an object's field. A dotted key names a field within a field.
func (p place) field(key string) place {
	if p.path == "" {
		return place{shortened(key)}
	}
	return place{p.path + "." + shortened(key)}
}

// within returns the place of a pointer's target in the value at p.
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

// plainPath matches paths that need no quotes in a sentence.
var plainPath = regexp.MustCompile(`^[A-Za-z0-9_.\[\]-]{1,80}$`)

// String returns the words for a part of a request in an error. A path with unusual keys of the caller's is quoted and
// cut.
func (p place) String() string {
	switch {
	case p.path == "":
		return "The request"
	case plainPath.MatchString(p.path):
		return p.path
	}
	return quoted(p.path)
}

// wrongJSON returns the error of a value that has another type than want.
func wrongJSON(at place, want string, v rawValue) error {
	return Errorf(BadRequest, "%s must be %s, got %s", at, want, describe(v))
}
