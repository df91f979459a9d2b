package api

import (
	"bytes"
	"encoding/json"
)

// Request is a request that knows its defaults and its rules.
type Request interface {
	// SetDefaults fills what the caller left out; it runs before decoding.
	SetDefaults()
	// Validate checks what the types alone cannot say. Its error is an *Error.
	Validate() error
}

// Message is the JSON of a request that has been read, strictly, and not been decoded yet.
type Message struct {
	value rawValue // without op
	op    rawValue // its field "op"; nil if there is none
}

// ReadMessage reads one JSON value. Empty input is the empty object.
func ReadMessage(body []byte) (Message, error) {
	v, err := readJSON(body)
	if begin := bytes.TrimSpace(body); err != nil && begin[0] != '{' && begin[0] != '[' {
		return Message{}, Errorf(BadRequest, "The request is not JSON").WithHint(
			"This is not Flight SQL; commands are JSON, such as {\"op\":\"Sample\",...}: see docs/wire.md.")
	}
	if err != nil {
		return Message{}, err
	}
	m := Message{value: v}
	m.op, m.value = take(v, "op")
	return m, nil
}

// take returns a field of an object, nil if it is absent or null, and the object without it.
func take(v rawValue, name string) (field, rest rawValue) {
	fields := fieldsIn(v)
	field, given := fields[name]
	if !given {
		return nil, v
	}
	if field.Kind() == 'n' {
		field = nil
	}
	delete(fields, name)
	return field, objectOf(fields)
}

// Op returns the operation that the message, of a ticket or a command, names in its field "op".
func (m Message) Op() (string, error) {
	if m.value.Kind() != '{' {
		return "", Errorf(BadRequest, "The request must be an object, got %s", describe(m.value))
	}
	var op string
	if m.op.Kind() != '"' {
		return "", Errorf(BadRequest, "op is missing").WithHint("Name the operation, such as {\"op\":\"Sample\",...}.")
	}
	return op, decodeJSON(m.op, place{}.field("op"), &op)
}

// Decode decodes the message into req, strictly (see the package comment), after setting the defaults, and validates
// it. The field "op" is left to Operation.Call.
func (m Message) Decode(req Request) error {
	req.SetDefaults()
	if err := decodeJSON(m.value, place{}, req); err != nil {
		return err
	}
	if err := checkWords(req); err != nil {
		return err
	}
	return req.Validate()
}

// decodeWithRest decodes the fields that dst has, and keeps the others, sorted, as they are.
func decodeWithRest(at place, v rawValue, dst any, rest *json.RawMessage) error {
	if v.Kind() != '{' {
		return wrongJSON(at, "an object", v)
	}
	own, others := map[string]rawValue{}, fieldsIn(v)
	for _, f := range Fields(dst) {
		if value, given := others[f.Name]; given {
			own[f.Name] = value
			delete(others, f.Name)
		}
	}
	if len(others) > 0 {
		if err := decodeJSON(objectOf(others), at, rest); err != nil {
			return err
		}
	}
	return decodeJSON(objectOf(own), at, dst)
}

// DecodeStruct reads one JSON object strictly into the struct that dst points to, over the values it already holds;
// field names are its json tags. It serves structs that other packages own, such as the training configuration.
func DecodeStruct(body []byte, dst any) error {
	v, err := readJSON(body)
	if err != nil {
		return err
	}
	return decodeJSON(v, place{}, dst)
}
