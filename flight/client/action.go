package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"reflect"
	"strings"

	"github.com/apache/arrow-go/v18/arrow/flight"

	"github.com/anisoflight/anisoflight/flight/api"
)

// Action calls the operation called name, which replies with JSON, by DoAction. The request is as in [Client.Get]. If
// progress is not nil, it is called with the progress that the server reports before the reply.
func (c *Client) Action(ctx context.Context, name string, req any, progress func(api.Meta)) (reply json.RawMessage,
	err error,
) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	body, err := encode("", req)
	if err != nil {
		return nil, err
	}
	stream, err := c.service.DoAction(ctx, &flight.Action{Type: name, Body: body})
	if err != nil {
		return nil, explain(ctx, err)
	}
	for {
		result, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF) && reply == nil:
			return nil, errors.New("client: the action has no reply")
		case errors.Is(err, io.EOF):
			return reply, nil
		case err != nil:
			return nil, explain(ctx, err)
		}
		if reply != nil && progress != nil {
			var m api.Meta
			if err := json.Unmarshal(reply, &m); err != nil {
				return nil, err
			}
			progress(m)
		}
		reply = result.GetBody()
	}
}

// act is Action with a decoded reply.
func act[R any](ctx context.Context, c *Client, name string, req any, progress func(api.Meta)) (reply R, err error) {
	text, err := c.Action(ctx, name, req, progress)
	if err != nil {
		return reply, err
	}
	return reply, json.Unmarshal(text, &reply)
}

// MakeSchedule makes a schedule of a kind, such as an *api.GeodesicSchedule, and stores it. If progress is not nil, it
// is called with the progress of the work.
func (c *Client) MakeSchedule(ctx context.Context, req api.ScheduleKind, progress func(api.Meta)) (api.ScheduleInfo,
	error,
) {
	fields := map[string]any{"kind": req.Kind()}
	gather(fields, reflect.ValueOf(req).Elem())
	return act[api.ScheduleInfo](ctx, c, "MakeSchedule", fields, progress)
}

// encode returns a request's JSON: the fields of a struct that are not zero, or all entries of a map or of JSON. It
// adds the operation's name as "op" unless it is empty.
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
		var values map[string]json.RawMessage
		if err := json.Unmarshal(text, &values); err != nil {
			return nil, err
		}
		for name, value := range values {
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

// gather adds the fields of a struct and of its embedded structs that are not zero.
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
