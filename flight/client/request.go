package client

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"
)

// encode returns a request's JSON: the fields of a struct that are not zero, or all entries of a map or of JSON, and
// the operation's name unless that is empty.
func encode(op string, req any) ([]byte, error) {
	fields := map[string]any{}
	switch req := req.(type) {
	case nil:
	case map[string]any:
		maps.Copy(fields, req)
	case json.Marshaler:
		text, err := req.MarshalJSON()
		if err != nil {
			return nil, err
		}
		var own map[string]json.RawMessage
		if err := json.Unmarshal(text, &own); err != nil {
			return nil, err
		}
		for name, value := range own {
			fields[name] = value
		}
	default:
		gather(fields, reflect.ValueOf(req))
	}
	if op != "" {
		fields["op"] = op
	}
	return json.Marshal(fields)
}

// gather adds the fields of a struct, those of embedded structs included, that are not zero.
func gather(fields map[string]any, v reflect.Value) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			gather(fields, v.Field(i))
		case name != "" && name != "-" && !v.Field(i).IsZero():
			fields[name] = v.Field(i).Interface()
		}
	}
}
