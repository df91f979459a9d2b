package cli

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/client"
)

// act does an action and decodes its reply into result, which may be nil.
func act(ctx context.Context, c connection, name string, fields map[string]any, progress func(api.Meta), result any) error {
	reply, err := c.Action(ctx, name, fields, progress)
	if err != nil || result == nil {
		return err
	}
	return json.Unmarshal(reply, result)
}

// perform does an action that may take its time, and shows the progress.
func perform(ctx context.Context, e env, name string, fields map[string]any, doing string, result any) error {
	return withServer(ctx, e, func(c connection) error {
		p := newProgress(e.err, e.log, doing)
		defer p.close()
		return act(ctx, c, name, fields, func(m api.Meta) { showMeta(p, m) }, result)
	})
}

// collect runs an operation that returns rows, shows the progress, and hands every message with rows to take.
func collect(ctx context.Context, e env, op string, fields map[string]any, doing string, take func(client.Message)) error {
	return withServer(ctx, e, func(c connection) error {
		p := newProgress(e.err, e.log, doing)
		defer p.close()
		for m, err := range c.Get(ctx, op, fields) {
			if err != nil {
				return err
			}
			showMeta(p, m.Meta)
			if m.Batch.Rows > 0 {
				take(m)
			}
		}
		return nil
	})
}

// list returns what one of the client's methods lists.
func list[R any](ctx context.Context, e env, method func(*client.Client, context.Context) ([]R, error)) (all []R, err error) {
	err = withServer(ctx, e, func(c connection) (err error) {
		all, err = method(c.Client, ctx)
		return err
	})
	return all, err
}

// isCode reports whether an error of the contract has the code.
func isCode(err error, code api.Code) bool {
	var e *api.Error
	return errors.As(err, &e) && e.Code == code
}
