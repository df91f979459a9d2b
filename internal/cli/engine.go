package cli

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine"
)

var dataOption = option{name: "data", def: "data", usage: "`folder` of models, schedules, bases, datasets and runs"}

// withEngine opens the data folder in this process for the length of f.
func withEngine(ctx context.Context, e env, f func(*engine.Engine) error) (err error) {
	dev, err := openDevice(e)
	if err != nil {
		return err
	}
	defer dev.Close()
	eng, err := engine.Open(ctx, engine.Config{Dir: e.text("data"), Version: Version(), Logger: e.log}, dev)
	if err != nil {
		return err
	}
	defer func() {
		// The runs' states are stored even after an interrupt.
		err = errors.Join(err, eng.Close(context.WithoutCancel(ctx)))
	}()
	return f(eng)
}

// act does an action and decodes its reply into result, which may be nil.
func act(ctx context.Context, eng *engine.Engine, name string, fields map[string]any, progress func(api.Meta), result any) error {
	body, err := encode(fields)
	if err != nil {
		return err
	}
	reply, err := eng.Action(ctx, name, body, progress)
	if err != nil {
		return err
	}
	if result == nil {
		return nil
	}
	raw, err := json.Marshal(reply)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, result)
}

// stream runs an operation and hands every event to emit.
func stream(ctx context.Context, eng *engine.Engine, op string, fields map[string]any, emit func(api.Schema, api.Event) error) error {
	body, err := encode(fields)
	if err != nil {
		return err
	}
	job, err := eng.Prepare(ctx, op, body)
	if err != nil {
		return err
	}
	return job.Run(ctx, func(ev api.Event) error { return emit(job.Schema, ev) })
}

// isCode reports whether an error of the engine has the code.
func isCode(err error, code api.Code) bool {
	var e *api.Error
	return errors.As(err, &e) && e.Code == code
}
