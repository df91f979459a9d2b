package client

import (
	"context"
	"reflect"

	"github.com/anisoflight/anisoflight/flight/api"
)

// MakeSchedule makes a schedule of a kind, such as an *api.GeodesicSchedule, and stores it. It may take long: progress,
// which may be nil, is called as it goes on.
func (c *Client) MakeSchedule(ctx context.Context, req api.ScheduleKind, progress func(api.Meta)) (api.ScheduleInfo,
	error,
) {
	fields := map[string]any{"kind": req.Kind()}
	gather(fields, reflect.ValueOf(req).Elem())
	return act[api.ScheduleInfo](ctx, c, "MakeSchedule", fields, progress)
}

// RemoteSchedule makes a schedule for a network that the caller evaluates: each question's columns, image, label,
// noise, t, g and omega, go to answer, which returns a batch of the columns of answers, the terms that the question's
// Meta names. It returns what the end says: the schedule as it is stored.
func (c *Client) RemoteSchedule(ctx context.Context, req api.RemoteSchedule, answers api.Schema,
	answer func(question Message) (api.Batch, error),
) (api.Meta, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	given := make(chan api.Batch)
	in := Input{Schema: answers, Batches: func(yield func(api.Batch) bool) {
		for {
			select {
			case b, more := <-given:
				if !more || !yield(b) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}}
	for m, err := range c.exchange(ctx, "RemoteSchedule", req, in) {
		switch {
		case err != nil:
			return nil, err
		case m.Meta["event"] == "stored":
			close(given)
		case m.Meta["event"] == "end":
			return m.Meta, nil
		case m.Meta["terms"] != nil:
			b, err := answer(m)
			if err != nil {
				cancel()
				return nil, err
			}
			select {
			case given <- b:
			case <-ctx.Done():
			}
		}
	}
	return nil, ctx.Err()
}
