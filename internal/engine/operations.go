package engine

import (
	"context"
	"strings"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/evaluating"
	"github.com/anisoflight/anisoflight/internal/engine/explain"
	"github.com/anisoflight/anisoflight/internal/engine/making"
	"github.com/anisoflight/anisoflight/internal/engine/offered"
	"github.com/anisoflight/anisoflight/internal/engine/reading"
	"github.com/anisoflight/anisoflight/internal/engine/sampling"
	"github.com/anisoflight/anisoflight/internal/engine/schedules"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// handler does one operation, by each of the ways that the contract's table lists for it.
type handler struct {
	action   func(ctx context.Context, req api.Request, progress func(api.Meta)) (any, error) // that speaks JSON
	job      func(ctx context.Context, req api.Request) (*api.Job, error)
	exchange func(ctx context.Context, req api.Request, in api.Schema) (*api.Exchange, error)
	upload   func(ctx context.Context, req api.Request, in api.Schema) (*api.Upload, error)
}

// newHandlers returns the operations by their names: the functions of the rooms.
func (e *Engine) newHandlers() map[string]handler {
	c, r, u := e.catalog, e.runs, &e.uploads
	s := &sampling.Sampler{Catalog: c, Batcher: e.batcher, MaxBytes: e.cfg.MaxBytes}
	k := &schedules.Maker{Catalog: c, Batcher: e.batcher, MaxBytes: e.cfg.MaxBytes}
	v := &evaluating.Evaluator{Catalog: c, Batcher: e.batcher, MaxBytes: e.cfg.MaxBytes}
	m := &making.Maker{Catalog: c, MaxBytes: e.cfg.MaxUploadBytes}
	d := &reading.Reader{Catalog: c, MaxBytes: e.cfg.MaxBytes}
	return map[string]handler{
		"Sample":           {job: job(s.Prepare), exchange: taking(s.Exchange)},
		"EvaluateSchedule": {job: job(k.Evaluate)},
		"TrainStep":        {job: job(r.TrainSteps), exchange: taking(r.TrainOn)},
		"WatchRun":         {job: job(r.Watch)},
		"Denoise":          {exchange: taking(v.Denoise)},
		"ScheduleGradient": {exchange: taking(v.ScheduleGradient)},
		"OfferNetwork":     {exchange: taking(offered.Maker{Catalog: c}.Open)},
		"EvaluateModel":    {job: job(v.EvaluateModel)},
		"Predict":          {job: job(v.Predict)},
		"BenchSchedule":    {job: job(k.Bench)},
		"Dataset":          {job: job(d.Dataset)},
		"Basis":            {job: job(d.Basis)},
		"Model":            {job: job(d.Model)},

		"PutModel":    {upload: taking(u.Model)},
		"PutDataset":  {upload: taking(u.Dataset)},
		"PutSchedule": {upload: taking(u.Schedule)},
		"PutBasis":    {upload: taking(u.Basis)},

		"ServerInfo":       ask(e.serverInfo),
		"ListModels":       list("models", c.ModelInfos),
		"DescribeModel":    ask(c.DescribeModel),
		"LoadModel":        ask(c.LoadModel),
		"UnloadModel":      done(c.UnloadModel),
		"DeleteModel":      done(c.DeleteModel),
		"MakeModel":        action(m.Model),
		"ListSchedules":    list("schedules", c.ScheduleInfos),
		"MakeSchedule":     action(k.Make),
		"ExportSchedule":   ask(k.Export),
		"ExportStart":      ask(k.ExportStart),
		"ExportStatistics": ask(k.ExportStatistics),
		"ExportFitted":     ask(k.ExportFitted),
		"PlanSampler":      ask(s.Plan),
		"ImportSchedule":   ask(k.Import),
		"DeleteSchedule":   done(c.DeleteSchedule),
		"ListBases":        list("bases", c.BasisInfos),
		"MakeBasis":        action(m.Basis),
		"DeleteBasis":      done(c.DeleteBasis),
		"ListDatasets":     list("datasets", c.DatasetInfos),
		"MakeDataset":      action(m.Dataset),
		"DeleteDataset":    done(c.DeleteDataset),
		"Advise":           action(k.Advise),
		"ListRuns":         list("runs", r.Infos),
		"GetRun":           ask(r.Get),
		"CreateRun":        action(r.Create),
		"StartRun":         ask(r.Start),
		"PauseRun":         ask(r.Pause),
		"CancelRun":        ask(r.Cancel),
		"DeleteRun":        done(r.Delete),
		"SaveModel":        ask(r.SaveModel),
	}
}

// request is a pointer to a request of type R.
type request[R any] interface {
	*R
	api.Request
}

func action[R, Out any, P request[R]](f func(context.Context, R, func(api.Meta)) (Out, error)) handler {
	return handler{action: func(ctx context.Context, req api.Request, progress func(api.Meta)) (any, error) {
		return f(ctx, *req.(P), progress)
	}}
}

// ask is an action without progress.
func ask[R, Out any, P request[R]](f func(context.Context, R) (Out, error)) handler {
	return action[R, Out, P](func(ctx context.Context, req R, _ func(api.Meta)) (Out, error) { return f(ctx, req) })
}

// done is an action whose reply only says of what it is done: it is the request.
func done[R any, P request[R]](f func(context.Context, R) error) handler {
	return ask[R, R, P](func(ctx context.Context, req R) (R, error) { return req, f(ctx, req) })
}

// list is an action that lists what is stored, under a key.
func list[I any](key string, infos func() []I) handler {
	return ask(func(context.Context, api.Empty) (map[string][]I, error) { return map[string][]I{key: infos()}, nil })
}

func job[R any, P request[R]](f func(context.Context, R) (*api.Job, error),
) func(context.Context, api.Request) (*api.Job, error) {
	return func(ctx context.Context, req api.Request) (*api.Job, error) { return f(ctx, *req.(P)) }
}

// taking is an operation that takes rows: an exchange or an upload.
func taking[R, Out any, P request[R]](f func(context.Context, R, api.Schema) (*Out, error),
) func(context.Context, api.Request, api.Schema) (*Out, error) {
	return func(ctx context.Context, req api.Request, in api.Schema) (*Out, error) { return f(ctx, *req.(P), in) }
}

// Operations returns the contract's operations, all of which the engine does.
func (e *Engine) Operations() api.Table { return api.Operations() }

// Action does an operation that speaks JSON and returns the object to reply with. Long ones call progress, which may be
// nil, now and then.
func (e *Engine) Action(ctx context.Context, call api.Call, progress func(api.Meta)) (any, error) {
	if progress == nil {
		progress = func(api.Meta) {}
	}
	if call.Op.Name != "ServerInfo" { // which must answer, and not count itself, when the server is busy
		leave, err := e.enter(call.Op)
		if err != nil {
			return nil, err
		}
		defer leave()
	}
	reply, err := e.handlers[call.Op.Name].action(ctx, call.Request, progress)
	return reply, explain.Error(err)
}

// Prepare checks and prices an operation that gives rows. The context bounds the preparation alone.
func (e *Engine) Prepare(ctx context.Context, call api.Call) (*api.Job, error) {
	job, err := e.handlers[call.Op.Name].job(ctx, call.Request)
	if err != nil {
		return nil, explain.Error(err)
	}
	work, watch := job.Run, new(device.Watch)
	job.Run = func(ctx context.Context, emit func(api.Event) error) error {
		leave, err := e.enter(call.Op)
		if err != nil {
			return err
		}
		defer leave()
		return explain.Error(work(watch.With(ctx), emit))
	}
	job.Waits = waits(watch)
	return job, nil
}

// Exchange opens an operation that takes rows of the schema in.
func (e *Engine) Exchange(ctx context.Context, call api.Call, in api.Schema) (*api.Exchange, error) {
	leave, err := e.enter(call.Op)
	if err != nil {
		return nil, err
	}
	x, err := e.handlers[call.Op.Name].exchange(ctx, call.Request, in)
	if err != nil {
		leave()
		return nil, explain.Error(err)
	}
	release := x.Close
	x.Close = func() {
		release()
		leave()
	}
	do, watch := x.Do, new(device.Watch)
	x.Do = func(ctx context.Context, in api.Batch, emit func(api.Event) error) error {
		return explain.Error(do(watch.With(ctx), in, emit))
	}
	if begin := x.Begin; begin != nil {
		x.Begin = func(ctx context.Context, emit func(api.Event) error) error {
			return explain.Error(begin(watch.With(ctx), emit))
		}
	}
	x.Waits = waits(watch)
	return x, nil
}

// Put opens an upload.
func (e *Engine) Put(ctx context.Context, call api.Call, in api.Schema) (*api.Upload, error) {
	u, err := e.handlers[call.Op.Name].upload(ctx, call.Request, in)
	if err != nil {
		return nil, explain.Error(err)
	}
	write, commit := u.Write, u.Commit
	u.Write = func(b api.Batch) error { return explain.Error(write(b)) }
	u.Commit = func() (int64, error) {
		rows, err := commit()
		return rows, explain.Error(err)
	}
	return u, nil
}

// enter admits an operation, or says that there are too many. The caller calls leave when it ends. Those that watch are
// counted apart: they wait, and take nothing from those at work.
func (e *Engine) enter(op *api.Operation) (leave func(), err error) {
	count, most, what := &e.active, e.cfg.MaxRequests, "is at work on %d requests"
	if op.Watches {
		count, most, what = &e.watching, e.cfg.MaxWatchers, "has %d watchers of runs"
	}
	if count.Add(1) > most {
		count.Add(-1)
		return nil, api.Errorf(api.Busy, "The server "+what, most).WithHint("Try again in a moment.")
	}
	return func() { count.Add(-1) }, nil
}

// waits says what a watch sees in the words of the contract. A program's key begins with its name.
func waits(w *device.Watch) func() api.Meta {
	return func() api.Meta {
		key, since, ok := w.Compiling()
		if !ok {
			return nil
		}
		name, _, _ := strings.Cut(key, " ")
		return api.Meta{"event": "compiling", "program": name, "compile_s": time.Since(since).Seconds()}
	}
}
