package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow/flight"
	"google.golang.org/protobuf/proto"

	"github.com/anisoflight/anisoflight/flight/api"
)

// Action calls an operation that answers with JSON, by its name, with a request as [Client.Get] takes it: a DoAction.
// The last result is the reply; those before report its progress to the function progress, which may be nil.
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

func marshal(d *flight.FlightDescriptor) ([]byte, error) { return proto.Marshal(d) }
