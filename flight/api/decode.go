package api

import (
	"bytes"
	"errors"
	"maps"

	"github.com/anisoflight/anisoflight/flight/api/strict"
)

// Request is a request that knows its defaults and its rules.
type Request interface {
	// SetDefaults fills what the caller left out; it runs before decoding.
	SetDefaults()
	// Validate checks what the types alone cannot say. Its error is an *Error.
	Validate() error
}

// Message is the JSON of a request that has been read, strictly, and not been decoded yet.
type Message struct{ value strict.Value }

// ReadMessage reads one JSON value. Empty input is the empty object.
func ReadMessage(body []byte) (Message, error) {
	v, err := strict.Read(body)
	if begin := bytes.TrimSpace(body); err != nil && begin[0] != '{' && begin[0] != '[' {
		return Message{}, Errorf(BadRequest, "The request is not JSON").WithHint(
			"This is not Flight SQL; commands are JSON, such as {\"op\":\"Sample\",...}: see docs/wire.md.")
	}
	return Message{v}, refused(err)
}

// op returns the message's field "op"; nil if there is none.
func (m Message) op() strict.Value {
	object, _ := m.value.(map[string]any)
	return object["op"]
}

// Op returns the operation that the message, of a ticket or a command, names in its field "op".
func (m Message) Op() (string, error) {
	if _, ok := m.value.(map[string]any); !ok {
		return "", Errorf(BadRequest, "The request must be an object, got %s", strict.Describe(m.value))
	}
	op, ok := m.op().(string)
	if !ok {
		return "", Errorf(BadRequest, "op is missing").WithHint("Name the operation, such as {\"op\":\"Sample\",...}.")
	}
	return op, nil
}

// Decode decodes the message into req, strictly (see the package comment), after setting the defaults, and validates
// it. The field "op" is left to Operation.Call.
func (m Message) Decode(req Request) error {
	v := m.value
	if object, ok := v.(map[string]any); ok {
		object = maps.Clone(object)
		delete(object, "op")
		v = object
	}
	req.SetDefaults()
	if err := strict.Decode(v, nil, req); err != nil {
		return refused(err)
	}
	if err := checkWords(req); err != nil {
		return err
	}
	return req.Validate()
}

// DecodeStruct reads one JSON object strictly into the struct that dst points to, over the values it already holds;
// field names are its json tags. It serves structs that other packages own, such as the training configuration.
func DecodeStruct(body []byte, dst any) error {
	v, err := strict.Read(body)
	if err != nil {
		return refused(err)
	}
	return refused(strict.Decode(v, nil, dst))
}

// refused returns the error of the contract for what package strict refuses; any other as it is.
func refused(err error) error {
	var wrong *strict.Error
	if !errors.As(err, &wrong) {
		return err
	}
	code := BadRequest
	if wrong.TooLarge {
		code = TooLarge
	}
	e := Errorf(code, "%s", wrong.Message)
	e.Hint, e.cause = readable(wrong.Hint), wrong.Unwrap()
	return e
}

func isList(v strict.Value) bool { _, ok := v.([]any); return ok }
