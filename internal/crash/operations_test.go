package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// request is one request of an operation.
type request struct {
	op, fields string
	in         *api.Schema // of an upload
	rows       api.Batch
}

// storing is an operation that stores.
type storing struct {
	name string
	request
	short  bool // one of those that every go test kills
	behind bool // the reply acknowledges that the work begins; it goes on after the reply
}

// operations are all that store, each on the folder that makeFolder makes.
var operations = []storing{
	{"PutDataset", upload("PutDataset", `{"name":"new"}`, images, pictures(6)), false, false},
	{"PutDataset replace", upload("PutDataset", `{"name":"a","replace":true}`, images, pictures(5)), true, false},
	{"MakeDataset", request{op: "MakeDataset", fields: `{"name":"drawn","model":"two","n":9}`}, false, false},
	{"DeleteDataset", request{op: "DeleteDataset", fields: `{"dataset":"b"}`}, false, false},
	{"PutSchedule", upload("PutSchedule", `{"name":"new"}`, schedules, knots(3)), false, false},
	{"PutSchedule replace", upload("PutSchedule", `{"name":"s","replace":true}`, schedules, knots(4)), false, false},
	{"MakeSchedule", logLinear("new", false), false, false},
	{"MakeSchedule replace", logLinear("s", true), true, false},
	{"DeleteSchedule", request{op: "DeleteSchedule", fields: `{"schedule":"s"}`}, false, false},
	{"PutBasis", upload("PutBasis", `{"name":"new"}`, bases, axis(0)), false, false},
	{"PutBasis replace", upload("PutBasis", `{"name":"corner","replace":true}`, bases, axis(9)), false, false},
	{"MakeBasis", request{op: "MakeBasis", fields: `{"name":"new","kind":"pca","dataset":"a","k":2}`}, false, false},
	{"DeleteBasis", request{op: "DeleteBasis", fields: `{"basis":"corner"}`}, false, false},
	{"MakeModel", mixture("new", 0.5, false), false, false},
	{"MakeModel replace", mixture("two", 0.5, true), true, false},
	{"DeleteModel", request{op: "DeleteModel", fields: `{"model":"two"}`}, false, false},
	{"SaveModel", request{op: "SaveModel", fields: `{"run":"r","name":"new"}`}, false, false},
	{"SaveModel replace", request{op: "SaveModel", fields: `{"run":"r","name":"two","replace":true}`}, false, false},
	{"CreateRun", createRun("new", ""), false, false},
	{"CreateRun replace", createRun("r", `,"seed":7,"replace":true`), true, false},
	{"TrainStep", request{op: "TrainStep", fields: `{"run":"r","steps":2}`}, false, false},
	{"StartRun", request{op: "StartRun", fields: `{"run":"r","kimg":0.016}`}, false, true},
	{"CancelRun", request{op: "CancelRun", fields: `{"run":"r"}`}, false, false},
	{"DeleteRun", request{op: "DeleteRun", fields: `{"run":"r"}`}, false, false},
}

// before fills the folder: two data sets, two models of exact laws, a schedule, a basis, and a run of two steps.
var before = []request{
	upload("PutDataset", `{"name":"a"}`, images, pictures(8)),
	upload("PutDataset", `{"name":"b"}`, images, pictures(3)),
	mixture("two", 0.1, false), mixture("other", 0.2, false),
	upload("PutSchedule", `{"name":"s"}`, schedules, knots(2)),
	upload("PutBasis", `{"name":"corner"}`, bases, axis(3)),
	createRun("r", ""),
	{op: "TrainStep", fields: `{"run":"r","steps":2}`},
}

var (
	images = api.Schema{Columns: []api.Column{
		{Name: "image", Type: api.Uint8, Kind: api.Tensor, Shape: []int{4, 4, 1}, DimNames: []string{"H", "W", "C"}},
		{Name: "label", Type: api.Int32},
	}}
	schedules = api.Schema{Columns: []api.Column{
		{Name: "label", Type: api.Int32},
		{Name: "subspace", Type: api.Int32},
		{Name: "t", Type: api.Float64},
		{Name: "g", Type: api.Float64},
	}}
	bases = api.Schema{Columns: []api.Column{
		{Name: "label", Type: api.Int32},
		{Name: "vector", Type: api.Float64, Kind: api.Tensor, Shape: []int{4, 4}, DimNames: []string{"H", "W"}},
	}}
)

func upload(op, fields string, in api.Schema, rows api.Batch) request {
	return request{op: op, fields: fields, in: &in, rows: rows}
}

// pictures returns n images, which depend on n.
func pictures(n int) api.Batch {
	pixels, labels := make([]uint8, 16*n), make([]int32, n)
	for i := range pixels {
		pixels[i] = uint8(i * (n + 3))
	}
	for i := range labels {
		labels[i] = int32(i % 2)
	}
	return api.Batch{Rows: n, Cols: []any{pixels, labels}}
}

// knots returns the table of one path with n+1 knots.
func knots(n int) api.Batch {
	var t, g []float64
	for k := range n + 1 {
		t = append(t, 100*float64(k)/float64(n))
		g = append(g, 1e-4*math.Pow(1e6, float64(k)/float64(n)))
	}
	return api.Batch{Rows: n + 1, Cols: []any{slices.Repeat([]int32{-1}, n+1), make([]int32, n+1), t, g}}
}

// axis returns the basis of one pixel.
func axis(i int) api.Batch {
	v := make([]float64, 16)
	v[i] = 1
	return api.Batch{Rows: 1, Cols: []any{[]int32{-1}, v}}
}

func logLinear(name string, replace bool) request {
	return request{op: "MakeSchedule", fields: fmt.Sprintf(
		`{"name":%q,"kind":"log-linear","T":50,"knots":5,"replace":%t}`, name, replace)}
}

func mixture(name string, variance float64, replace bool) request {
	return request{op: "MakeModel", fields: fmt.Sprintf(
		`{"name":%q,"means":[[-1,0],[1,0]],"covariances":[[[%[2]g,0],[0,%[2]g]],[[%[2]g,0],[0,%[2]g]]],"replace":%t}`,
		name, variance, replace)}
}

func createRun(name, more string) request {
	return request{op: "CreateRun", fields: fmt.Sprintf(`{"name":%q,"stage":"pretrain","dataset":"a","batch":4,"kimg":1,
		"network":{"model_type":"SongUNet","img_resolution":4,"img_channels":1,"label_dim":2,"model_channels":4,
		"channel_mult":[1],"num_blocks":1,"attn_resolutions":[],"dropout":0}%s}`, name, more)}
}

// perform does a request and returns once it is acknowledged.
func perform(ctx context.Context, e *engine.Engine, r request) error {
	switch {
	case r.in != nil:
		call, err := e.Operations().Call(api.ByPut, r.op, []byte(r.fields))
		if err != nil {
			return err
		}
		u, err := e.Put(ctx, call, *r.in)
		if err != nil {
			return err
		}
		if err := u.Write(r.rows); err != nil {
			u.Abort()
			return err
		}
		_, err = u.Commit()
		return err
	case e.Operations().Named(r.op).Rows:
		return read(ctx, e, r.op, r.fields, func(api.Batch) {})
	}
	_, err := ask(ctx, e, r.op, r.fields)
	return err
}

// perform does the operation, and waits for the work behind it.
func (s storing) perform(ctx context.Context, e *engine.Engine) error {
	err := perform(ctx, e, s.request)
	if err == nil && s.behind {
		err = waitForRuns(ctx, e)
	}
	return err
}

// ask does an action and returns its reply as JSON values.
func ask(ctx context.Context, e *engine.Engine, op, body string) (map[string]any, error) {
	call, err := e.Operations().Call(api.ByAction, op, []byte(body))
	if err != nil {
		return nil, err
	}
	reply, err := e.Action(ctx, call, nil)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(reply)
	if err != nil {
		return nil, err
	}
	var out map[string]any
	return out, json.Unmarshal(text, &out)
}

// read does an operation that gives rows.
func read(ctx context.Context, e *engine.Engine, op, body string, to func(api.Batch)) error {
	call, err := e.Operations().Call(api.ByGet, op, []byte(body))
	if err != nil {
		return err
	}
	job, err := e.Prepare(ctx, call)
	if err != nil {
		return err
	}
	return job.Run(ctx, func(event api.Event) error {
		if event.Batch != nil {
			to(*event.Batch)
		}
		return nil
	})
}

// waitForRuns waits until no run is at work.
func waitForRuns(ctx context.Context, e *engine.Engine) error {
	for {
		reply, err := ask(ctx, e, "ListRuns", "")
		if err != nil {
			return err
		}
		text, err := json.Marshal(reply)
		if err != nil || !strings.Contains(string(text), `"state":"running"`) {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// open opens the engine of a folder.
func open(ctx context.Context, dir string, dev *device.Device) (*engine.Engine, error) {
	return engine.Open(ctx, engine.Config{Dir: dir, Version: "crash", Device: dev, Logger: slog.New(slog.DiscardHandler)})
}

// makeFolder makes a folder with what before stores.
func makeFolder(ctx context.Context, dir string, dev *device.Device) error {
	e, err := open(ctx, dir, dev)
	if err != nil {
		return err
	}
	for _, r := range before {
		if err := perform(ctx, e, r); err != nil {
			return fmt.Errorf("%s %s: %w", r.op, r.fields, err)
		}
	}
	return e.Close(ctx)
}
