package engine

import (
	"context"
	"strings"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/evaluating"
	"github.com/anisoflight/anisoflight/internal/engine/explain"
	"github.com/anisoflight/anisoflight/internal/engine/offered"
	"github.com/anisoflight/anisoflight/internal/engine/plans"
	"github.com/anisoflight/anisoflight/internal/engine/sampling"
	"github.com/anisoflight/anisoflight/internal/engine/schedules"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// handler does one operation, in each of the ways that the contract's table lists for it.
type handler struct {
	action   func(ctx context.Context, req api.Request, progress func(api.Meta)) (any, error) // that speaks JSON
	job      func(ctx context.Context, req api.Request) (*api.Job, error)
	exchange func(ctx context.Context, req api.Request, in api.Schema) (*api.Exchange, error)
	upload   func(ctx context.Context, req api.Request, in api.Schema) (*api.Upload, error)
}

// newHandlers returns the handlers of all operations, by name.
func (e *Engine) newHandlers() map[string]handler {
	c, r, d := e.catalog, e.runs, &e.contents
	s := &sampling.Sampler{Catalog: c, Batcher: e.batcher, MaxBytes: e.cfg.MaxBytes}
	k := &schedules.Maker{Catalog: c, Batcher: e.batcher, MaxBytes: e.cfg.MaxBytes}
	p := &plans.Maker{Catalog: c, Batcher: e.batcher}
	v := &evaluating.Evaluator{Catalog: c, Batcher: e.batcher, MaxBytes: e.cfg.MaxBytes}
	return map[string]handler{
		"Sample":           {job: job(s.Prepare), exchange: withRows(s.Exchange)},
		"EvaluateSchedule": {job: job(k.Evaluate)},
		"TrainStep":        {job: job(r.TrainSteps), exchange: withRows(r.TrainOn)},
		"WatchRun":         {job: job(r.Watch)},
		"Denoise":          {exchange: withRows(v.Denoise)},
		"ScheduleGradient": {exchange: withRows(v.ScheduleGradient)},
		"OfferNetwork":     {exchange: withRows(offered.Open)},
		"EvaluateModel":    {job: job(v.EvaluateModel)},
		"Predict":          {job: job(v.Predict)},
		"Dataset":          {job: job(d.SendDataset)},
		"Basis":            {job: job(d.SendBasis)},
		"Model":            {job: job(d.SendModel)},

		"PutModel":    {upload: withRows(d.PutModel)},
		"PutDataset":  {upload: withRows(d.PutDataset)},
		"PutSchedule": {upload: withRows(d.PutSchedule)},
		"PutBasis":    {upload: withRows(d.PutBasis)},

		"ServerInfo":     ask(e.serverInfo),
		"ListModels":     list("models", c.ModelInfos),
		"DescribeModel":  ask(c.DescribeModel),
		"LoadModel":      ask(c.LoadModel),
		"UnloadModel":    done(c.UnloadModel),
		"DeleteModel":    done(c.DeleteModel),
		"MakeModel":      action(d.MakeModel),
		"ListSchedules":  list("schedules", c.ScheduleInfos),
		"MakeSchedule":   action(k.Make),
		"ExportSchedule": ask(k.Export),
		"ExportStart":    ask(k.ExportStart),
		"ImportSchedule": ask(k.Import),
		"DeleteSchedule": done(c.DeleteSchedule),
		"ListPlans":      list("plans", c.PlanInfos),
		"MakePlan":       action(p.Make),
		"EndSearch":      done(p.EndSearch),
		"PlanSampler":    ask(s.Plan),
		"ImportPlan":     ask(c.ImportPlan),
		"DeletePlan":     done(c.DeletePlan),
		"ListBases":      list("bases", c.BasisInfos),
		"MakeBasis":      action(d.MakeBasis),
		"DeleteBasis":    done(c.DeleteBasis),
		"ListDatasets":   list("datasets", c.DatasetInfos),
		"MakeDataset":    action(d.MakeDataset),
		"DeleteDataset":  done(c.DeleteDataset),
		"ListRuns":       list("runs", r.Infos),
		"GetRun":         ask(r.Get),
		"CreateRun":      action(r.Create),
		"StartRun":       ask(r.Start),
		"PauseRun":       ask(r.Pause),
		"CancelRun":      ask(r.Cancel),
		"DeleteRun":      done(r.Delete),
		"SaveModel":      ask(r.SaveModel),
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

// ask wraps an action without progress.
func ask[R, Out any, P request[R]](f func(context.Context, R) (Out, error)) handler {
	return action[R, Out, P](func(ctx context.Context, req R, _ func(api.Meta)) (Out, error) { return f(ctx, req) })
}

// done wraps an action without a reply; it echoes the request.
func done[R any, P request[R]](f func(context.Context, R) error) handler {
	return ask[R, R, P](func(ctx context.Context, req R) (R, error) { return req, f(ctx, req) })
}

// list wraps a list of what is stored, which the reply has under a key.
func list[I any](key string, infos func() []I) handler {
	return ask(func(context.Context, api.Empty) (map[string][]I, error) { return map[string][]I{key: infos()}, nil })
}

func job[R any, P request[R]](f func(context.Context, R) (*api.Job, error),
) func(context.Context, api.Request) (*api.Job, error) {
	return func(ctx context.Context, req api.Request) (*api.Job, error) { return f(ctx, *req.(P)) }
}

// withRows wraps an operation that takes rows: an exchange or an upload.
func withRows[R, Out any, P request[R]](f func(context.Context, R, api.Schema) (*Out, error),
) func(context.Context, api.Request, api.Schema) (*Out, error) {
	return func(ctx context.Context, req api.Request, in api.Schema) (*Out, error) { return f(ctx, *req.(P), in) }
}

// Operations returns the contract's operations, all of which the engine does.
func (e *Engine) Operations() api.Table { return api.Operations() }

// Action does an operation that speaks JSON, and returns its reply. If progress is not nil, long operations call it now
// and then.
func (e *Engine) Action(ctx context.Context, call api.Call, progress func(api.Meta)) (any, error) {
	if progress == nil {
		progress = func(api.Meta) {}
	}
	if call.Op.Name != "ServerInfo" { // it answers even if the server is busy, and does not count itself
		leave, err := e.enter(call.Op)
		if err != nil {
			return nil, err
		}
		defer leave()
	}
	reply, err := e.handlers[call.Op.Name].action(ctx, call.Request, progress)
	return reply, explain.Error(err)
}

// Prepare checks and prices an operation that gives rows. ctx limits only the preparation.
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
	job.Waits = compilationMeta(watch)
	return job, nil
}

// Exchange opens an operation that takes rows of schema in.
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
	if end := x.End; end != nil {
		x.End = func(ctx context.Context) (map[string]any, error) {
			reply, err := end(ctx)
			return reply, explain.Error(err)
		}
	}
	x.Waits = compilationMeta(watch)
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

// enter counts an operation until leave, or returns BUSY. Operations that watch runs have a limit of their own, since
// they only wait.
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

// compilationMeta returns the metadata that tells a client which program is being compiled. A program's key begins with
// its name.
func compilationMeta(w *device.Watch) func() api.Meta {
	return func() api.Meta {
		key, since, ok := w.Compiling()
		if !ok {
			return nil
		}
		name, _, _ := strings.Cut(key, " ")
		return api.Meta{"event": "compiling", "program": name, "compile_s": time.Since(since).Seconds()}
	}
}
