package api

import (
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Request is a request that knows its defaults and its rules.
type Request interface {
	// SetDefaults fills what the caller left out; it runs before decoding.
	SetDefaults()
	// Validate checks what the types alone cannot say. Its error is an *Error.
	Validate() error
}

// Message is the JSON of a request that has been read, strictly, and not been decoded yet.
type Message struct{ value tree }

// ReadMessage reads one JSON value. Empty input is the empty object.
func ReadMessage(body []byte) (Message, error) {
	v, err := parse(body)
	return Message{v}, err
}

// Op returns the operation that the message, of a ticket or a command, names in its field "op".
func (m Message) Op() (string, error) {
	object, ok := m.value.(map[string]any)
	if !ok {
		return "", Errorf(BadRequest, "The request must be an object, got %s", describe(m.value))
	}
	op, ok := object["op"].(string)
	if !ok {
		return "", Errorf(BadRequest, "op is missing").WithHint("Name the operation, such as {\"op\":\"Sample\",...}.")
	}
	return op, nil
}

// Decode decodes the message into req, strictly (see the package comment), after setting the defaults, and validates
// it. The field "op" is accepted and ignored.
func (m Message) Decode(req Request) error {
	v := m.value
	if object, ok := v.(map[string]any); ok {
		if op, given := object["op"]; given {
			if _, ok := op.(string); !ok {
				return Errorf(BadRequest, "op must be text, got %s", describe(op))
			}
			object = maps.Clone(object)
			delete(object, "op")
			v = object
		}
	}
	req.SetDefaults()
	if err := decodeInto(v, nil, reflect.ValueOf(req).Elem()); err != nil {
		return err
	}
	return req.Validate()
}

// Decode reads one JSON object into req, as Message.Decode does.
func Decode(body []byte, req Request) error {
	m, err := ReadMessage(body)
	if err != nil {
		return err
	}
	return m.Decode(req)
}

// DecodeStruct reads one JSON object strictly into the struct that dst points to, over the values it already holds;
// field names are its json tags. It serves structs that other packages own, such as the training configuration.
func DecodeStruct(body []byte, dst any) error {
	v, err := parse(body)
	if err != nil {
		return err
	}
	return decodeInto(v, nil, reflect.ValueOf(dst).Elem())
}

// treeDecoder is implemented by fields that accept more than one JSON form.
type treeDecoder interface {
	decodeTree(at *place, v tree) error
}

// decodeInto sets dst, which is addressable, from v.
func decodeInto(v tree, at *place, dst reflect.Value) error {
	if d, ok := dst.Addr().Interface().(treeDecoder); ok {
		return d.decodeTree(at, v)
	}
	if dst.Type() == reflect.TypeFor[json.RawMessage]() {
		if _, ok := v.(map[string]any); !ok {
			return wrongType(at, "an object", v)
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
			return wrongType(at, "text", v)
		}
		dst.SetString(s)
		return nil
	case reflect.Bool:
		b, ok := v.(bool)
		if !ok {
			return wrongType(at, "true or false", v)
		}
		dst.SetBool(b)
		return nil
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Uint64, reflect.Float64:
		return decodeNumber(v, at, dst)
	case reflect.Slice:
		list, ok := v.([]any)
		if !ok {
			return wrongType(at, "a list", v)
		}
		fresh := reflect.MakeSlice(dst.Type(), len(list), len(list))
		inside := at.entry()
		for i := range list {
			inside.index = i
			if err := decodeInto(list[i], inside, fresh.Index(i)); err != nil {
				return err
			}
		}
		dst.Set(fresh)
		return nil
	case reflect.Struct:
		return decodeStruct(v, at, dst)
	}
	panic("api: requests cannot hold a " + dst.Type().String())
}

// decodeStruct sets the fields of dst by their json tags. A field tagged `api:"rest"` (a json.RawMessage) takes every
// key that no other field does.
func decodeStruct(v tree, at *place, dst reflect.Value) error {
	object, ok := v.(map[string]any)
	if !ok {
		return wrongType(at, "an object", v)
	}
	fields, rest := fieldsOf(dst)
	var others map[string]any
	for _, key := range slices.Sorted(maps.Keys(object)) {
		field, known := fields[key]
		switch {
		case known:
			if err := decodeInto(object[key], at.field(key), field); err != nil {
				return err
			}
		case rest.IsValid():
			if others == nil {
				others = map[string]any{}
			}
			others[key] = object[key]
		default:
			return Errorf(BadRequest, "%s is not a field here", at.field(key)).
				WithHint("Known: %s.", strings.Join(slices.Sorted(maps.Keys(fields)), ", "))
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

func decodeNumber(v tree, at *place, dst reflect.Value) error {
	number, ok := v.(json.Number)
	if !ok {
		return wrongType(at, "a number", v)
	}
	text := number.String()
	if dst.Kind() == reflect.Float64 {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsInf(x, 0) {
			return Errorf(BadRequest, "%s must be a number in range, got %s", at, describe(v))
		}
		dst.SetFloat(x)
		return nil
	}
	if strings.ContainsAny(text, ".eE") {
		return wrongType(at, "a whole number", v)
	}
	if dst.Kind() == reflect.Uint64 {
		x, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return Errorf(BadRequest, "%s must lie in 0 … 2⁶⁴ − 1, got %s", at, describe(v))
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
		return Errorf(TooLarge, "%s must be small enough to serve, got %s", at, describe(v))
	}
	return Errorf(BadRequest, "%s must be a number in range, got %s", at, describe(v))
}

func wrongType(at *place, want string, v tree) *Error {
	return Errorf(BadRequest, "%s must be %s, got %s", at, want, describe(v))
}

// decode sets *dst from v.
func decode(v tree, at *place, dst any) error {
	return decodeInto(v, at, reflect.ValueOf(dst).Elem())
}
