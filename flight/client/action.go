package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow/flight"
	jsonv2 "github.com/go-json-experiment/json"

	"github.com/anisoflight/anisoflight/flight/api"
)

// Action calls the operation called name, which replies with JSON, by DoAction. The request is as in [Client.Get]. If
// progress is not nil, it is called with the progress that the server reports before the reply.
func (c *Client) Action(ctx context.Context, name string, req any, progress func(api.Meta)) (reply json.RawMessage,
	err error,
) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	body, err := encode(req, "", "")
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
	body, err := encode(req, "kind", req.Kind())
	if err != nil {
		return api.ScheduleInfo{}, err
	}
	return act[api.ScheduleInfo](ctx, c, "MakeSchedule", json.RawMessage(body), progress)
}

// encode returns a request's JSON: the fields of a struct that are not zero, or all entries of a map or of JSON. The
// field called name is added unless its value is empty.
func encode(req any, name, value string) ([]byte, error) {
	fields := map[string]json.RawMessage{}
	if req != nil {
		text, err := jsonv2.Marshal(req, jsonv2.OmitZeroStructFields(true))
		if err == nil {
			err = json.Unmarshal(text, &fields)
		}
		if err != nil {
			return nil, err
		}
	}
	if value != "" {
		fields[name], _ = json.Marshal(value) // never fails
	}
	return json.Marshal(fields)
}
