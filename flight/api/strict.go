package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"unicode/utf8"
)

// tree is a JSON value whose objects have no repeated keys: nil, bool, string, json.Number, []any or map[string]any.
type tree = any

// maxDepth bounds the nesting of a request, so that hostile input cannot exhaust the stack.
const maxDepth = 32

// parse reads exactly one JSON value. Empty input is the empty object.
func parse(body []byte) (tree, error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return map[string]any{}, nil
	}
	if !utf8.Valid(body) {
		return nil, Errorf(BadRequest, "The request is not UTF-8 text")
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	v, err := parseValue(d, "", 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, Errorf(BadRequest, "The request holds more than one JSON value")
	}
	return v, nil
}

func parseValue(d *json.Decoder, path string, depth int) (tree, error) {
	if depth > maxDepth {
		return nil, Errorf(BadRequest, "%s must be nested at most %d deep", fieldName(path), maxDepth)
	}
	token, err := d.Token()
	if err != nil {
		return nil, syntaxError(err)
	}
	switch delim, _ := token.(json.Delim); delim {
	case '{':
		return parseObject(d, path, depth)
	case '[':
		list := []any{}
		for d.More() {
			v, err := parseValue(d, path+"["+strconv.Itoa(len(list))+"]", depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.Token()
		return list, syntaxError(err)
	}
	return token, nil
}

func parseObject(d *json.Decoder, path string, depth int) (tree, error) {
	object := map[string]any{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, syntaxError(err)
		}
		key := token.(string) // the decoder accepts nothing else here
		inside := join(path, key)
		if _, twice := object[key]; twice {
			return nil, Errorf(BadRequest, "%s is given twice", fieldName(inside))
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
		return Errorf(BadRequest, "The request's JSON ends too early")
	}
	return Errorf(BadRequest, "The request is not JSON: %w", err)
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// plainPath is a path that can stand in a sentence as it is.
var plainPath = regexp.MustCompile(`^[A-Za-z0-9_.\[\]-]{1,80}$`)

// fieldName returns the words for the part of a request that an error is about: its path, quoted and cut short where
// the caller's own keys are no words.
func fieldName(path string) string {
	switch {
	case path == "":
		return "The request"
	case plainPath.MatchString(path):
		return path
	}
	return describe(path)
}

// describe names a JSON value for an error message, shortened.
func describe(v tree) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	case string:
		if len(v) > 40 {
			v = v[:40] + "…"
		}
		return strconv.Quote(v)
	}
	s := fmt.Sprint(v)
	if len(s) > 40 {
		s = s[:40] + "…"
	}
	return s
}
