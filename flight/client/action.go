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

// act does an action that answers with JSON: its last result is the reply, those before are news of its progress, handed to
// progress, which may be nil.
func act[R any](ctx context.Context, c *Client, name string, req any, progress func(api.Meta)) (reply R, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	body, err := encode("", req)
	if err != nil {
		return reply, err
	}
	stream, err := c.service.DoAction(ctx, &flight.Action{Type: name, Body: body})
	if err != nil {
		return reply, explain(ctx, err)
	}
	var last []byte
	for {
		result, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			if last == nil {
				return reply, errors.New("client: the action has no reply")
			}
			return reply, json.Unmarshal(last, &reply)
		case err != nil:
			return reply, explain(ctx, err)
		}
		if last != nil && progress != nil {
			var news api.Meta
			if err := json.Unmarshal(last, &news); err != nil {
				return reply, err
			}
			progress(news)
		}
		last = result.GetBody()
	}
}

func marshal(d *flight.FlightDescriptor) ([]byte, error) { return proto.Marshal(d) }
