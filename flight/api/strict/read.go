package strict

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Value is a JSON value whose objects have no repeated keys: nil, bool, string, json.Number, []any or map[string]any.
type Value = any

// maxDepth bounds the nesting of a request, so that hostile input cannot exhaust the stack.
const maxDepth = 32

// Read reads exactly one JSON value. Empty input is the empty object.
func Read(body []byte) (Value, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return map[string]any{}, nil
	}
	if !utf8.Valid(body) {
		return nil, errorf("The request is not UTF-8 text")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	v, err := parseValue(d, nil, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errorf("The request holds more than one JSON value")
	}
	return v, nil
}

func parseValue(d *json.Decoder, at *Place, depth int) (Value, error) {
	if depth > maxDepth {
		return nil, errorf("%s must be nested at most %d deep", at, maxDepth)
	}
	token, err := d.Token()
	if err != nil {
		return nil, syntaxError(err)
	}
	switch delim, _ := token.(json.Delim); delim {
	case '{':
		return parseObject(d, at, depth)
	case '[':
		list := []any{}
		inside := at.Entry()
		for d.More() {
			inside.Index = len(list)
			v, err := parseValue(d, inside, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.Token()
		return list, syntaxError(err)
	}
	if n, ok := token.(json.Number); ok {
		return whole(n), nil
	}
	return token, nil
}

// whole returns a whole number in digits alone: 8 for 8.0 and 8e0. Above 2⁵³ a double may not be the number that was
// meant, and stays as it is.
func whole(n json.Number) json.Number {
	if !strings.ContainsAny(string(n), ".eE") {
		return n
	}
	x, err := n.Float64()
	if err != nil || x != math.Trunc(x) || math.Abs(x) > 1<<53 {
		return n
	}
	return json.Number(strconv.FormatInt(int64(x), 10))
}

func parseObject(d *json.Decoder, at *Place, depth int) (Value, error) {
	object := map[string]any{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, syntaxError(err)
		}
		key := token.(string) // the decoder accepts nothing else here
		inside := at.Field(key)
		if _, twice := object[key]; twice {
			return nil, errorf("%s is given twice", inside)
		}
		if object[key], err = parseValue(d, inside, depth+1); err != nil {
			return nil, err
		}
	}
	_, err := d.Token()
	return object, syntaxError(err)
}

func syntaxError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return errorf("The request's JSON ends too early")
	}
	return errorf("The request is not JSON: %w", err)
}

// Describe names a JSON value for an error message, shortened.
func Describe(v Value) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case string:
		return strconv.Quote(Shortened(v))
	}
	return Shortened(fmt.Sprint(v))
}

// mostQuoted bounds the characters of what was sent that an error shows.
const mostQuoted = 80

// Shortened returns text with at most 80 characters, and "…" for the rest.
func Shortened(text string) string { return Cut(text, mostQuoted) }

// Cut returns text with at most so many characters, and "…" for the rest.
func Cut(text string, most int) string {
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

// Place is where in a request a value stands. It is a chain up to the request itself, which is nil, so that going into
// a value costs the same at any depth and under any key; the path is put together where an error names it.
type Place struct {
	parent *Place
	key    string // of an object's field
	Index  int    // of a list's entry; −1 of a field
}

// Field returns the place of an object's field. A dotted key is that of a field within a field.
func (p *Place) Field(key string) *Place { return &Place{parent: p, key: key, Index: -1} }

// Entry returns the place of a list's entries. Its index is set to the entry that is looked at.
func (p *Place) Entry() *Place { return &Place{parent: p} }

// plainPath is a path that can stand in a sentence as it is.
var plainPath = regexp.MustCompile(`^[A-Za-z0-9_.\[\]-]{1,80}$`)

// String returns the words for the part of a request that an error is about: its path, quoted and cut short where the
// caller's own keys are no words.
func (p *Place) String() string {
	if p == nil {
		return "The request"
	}
	path := p.path()
	if plainPath.MatchString(path) {
		return path
	}
	return Describe(path)
}

// path joins the keys and indices. Depth is bounded by maxDepth, and keys are cut to what an error shows.
func (p *Place) path() string {
	var parts []string
	for ; p != nil; p = p.parent {
		switch {
		case p.Index >= 0:
			parts = append(parts, "["+strconv.Itoa(p.Index)+"]")
		case p.parent == nil:
			parts = append(parts, Shortened(p.key))
		default:
			parts = append(parts, "."+Shortened(p.key))
		}
	}
	slices.Reverse(parts)
	return strings.Join(parts, "")
}
