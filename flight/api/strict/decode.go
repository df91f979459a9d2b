package strict

import (
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Decoder is implemented by fields that accept more than one JSON form.
type Decoder interface {
	DecodeStrictly(at *Place, v Value) error
}

// Decode sets *dst, over the values that it already holds, from the value at a place of the request. Field names are
// those of json tags; see the package comment for what is an error.
func Decode(v Value, at *Place, dst any) error { return decodeInto(v, at, reflect.ValueOf(dst).Elem()) }

// decodeInto sets dst, which is addressable, from v.
func decodeInto(v Value, at *Place, dst reflect.Value) error {
	if d, ok := dst.Addr().Interface().(Decoder); ok {
		return d.DecodeStrictly(at, v)
	}
	if dst.Type() == reflect.TypeFor[json.RawMessage]() {
		if _, ok := v.(map[string]any); !ok {
			return WrongType(at, "an object", v)
		}
		raw, err := json.Marshal(v)
		dst.SetBytes(raw)
		return err
	}
	switch dst.Kind() {
	case reflect.Pointer:
		fresh := reflect.New(dst.Type().Elem())
		if err := decodeInto(v, at, fresh.Elem()); err != nil {
			return err
		}
		dst.Set(fresh)
		return nil
	case reflect.String:
		s, ok := v.(string)
		if !ok {
			return WrongType(at, "text", v)
		}
		dst.SetString(s)
		return nil
	case reflect.Bool:
		b, ok := v.(bool)
		if !ok {
			return WrongType(at, "true or false", v)
		}
		dst.SetBool(b)
		return nil
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint64, reflect.Float64:
		return decodeNumber(v, at, dst)
	case reflect.Slice:
		list, ok := v.([]any)
		if !ok {
			return WrongType(at, "a list", v)
		}
		fresh := reflect.MakeSlice(dst.Type(), len(list), len(list))
		inside := at.Entry()
		for i := range list {
			inside.Index = i
			if err := decodeInto(list[i], inside, fresh.Index(i)); err != nil {
				return err
			}
		}
		dst.Set(fresh)
		return nil
	case reflect.Struct:
		return decodeStruct(v, at, dst)
	}
	panic("strict: requests cannot hold a " + dst.Type().String())
}

// decodeStruct sets the fields of dst by their json tags. A field tagged `api:"rest"` (a json.RawMessage) takes every
// key that no other field does.
func decodeStruct(v Value, at *Place, dst reflect.Value) error {
	object, ok := v.(map[string]any)
	if !ok {
		return WrongType(at, "an object", v)
	}
	fields, rest := fieldsOf(dst)
	var others map[string]any
	for _, key := range slices.Sorted(maps.Keys(object)) {
		field, known := fields[key]
		switch {
		case known && object[key] == nil: // null is absent
		case known:
			if err := decodeInto(object[key], at.Field(key), field); err != nil {
				return err
			}
		case rest.IsValid():
			if others == nil {
				others = map[string]any{}
			}
			others[key] = object[key]
		default:
			known := strings.Join(slices.Sorted(maps.Keys(fields)), ", ")
			return errorf("%s is not a field here", at.Field(key)).hint("Known: %s.", known)
		}
	}
	if others != nil {
		raw, err := json.Marshal(others)
		if err != nil {
			return err
		}
		rest.SetBytes(raw)
	}
	return nil
}

// Fields lists the names of the fields of the struct that v points to.
func Fields(v any) []string {
	fields, _ := fieldsOf(reflect.ValueOf(v).Elem())
	return slices.Collect(maps.Keys(fields))
}

// fieldsOf lists the fields of a struct, those of embedded structs included, by json name.
func fieldsOf(dst reflect.Value) (fields map[string]reflect.Value, rest reflect.Value) {
	fields = map[string]reflect.Value{}
	for i := range dst.NumField() {
		f := dst.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			inner, innerRest := fieldsOf(dst.Field(i))
			maps.Copy(fields, inner)
			if innerRest.IsValid() {
				rest = innerRest
			}
		case f.Tag.Get("api") == "rest":
			rest = dst.Field(i)
		case !f.IsExported() || name == "-":
		case name != "":
			fields[name] = dst.Field(i)
		}
	}
	return fields, rest
}

// digits is what a uint64 may be as text.
var digits = regexp.MustCompile(`^[0-9]{1,20}$`)

func decodeNumber(v Value, at *Place, dst reflect.Value) error {
	number, ok := v.(json.Number)
	if text, is := v.(string); is && dst.Kind() == reflect.Uint64 && digits.MatchString(text) {
		number, ok = json.Number(text), true
	}
	if !ok {
		return WrongType(at, "a number", v)
	}
	text := number.String()
	if dst.Kind() == reflect.Float64 {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsInf(x, 0) {
			return errorf("%s must be a number in range, got %s", at, Describe(v))
		}
		dst.SetFloat(x)
		return nil
	}
	if strings.ContainsAny(text, ".eE") {
		want := "a whole number"
		if x, _ := number.Float64(); x == math.Trunc(x) { // see whole
			want += ", in digits alone above 2⁵³"
		}
		return WrongType(at, want, v)
	}
	if dst.Kind() == reflect.Uint64 {
		x, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return errorf("%s must lie in 0 … 2⁶⁴ − 1, got %s", at, Describe(v))
		}
		dst.SetUint(x)
		return nil
	}
	x, err := strconv.ParseInt(text, 10, dst.Type().Bits())
	switch {
	case err == nil:
		dst.SetInt(x)
		return nil
	case dst.Kind() == reflect.Int && text[0] != '-': // a size: well formed, but nobody could serve it
		return tooLarge("%s must be small enough to serve, got %s", at, Describe(v))
	}
	return errorf("%s must be a number in range, got %s", at, Describe(v))
}
