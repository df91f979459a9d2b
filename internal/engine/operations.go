package engine

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/explain"
	"github.com/anisoflight/anisoflight/internal/engine/uploads"
	"github.com/anisoflight/anisoflight/kernels/device"
)

// handler does one operation, by each of the ways that the contract's table lists for it.
type handler struct {
	action   doAction // that speaks JSON
	job      doJob
	exchange doExchange
	upload   doUpload
}

type (
	doAction   func(e *Engine, ctx context.Context, req api.Request, progress func(api.Meta)) (any, error)
	doJob      func(e *Engine, ctx context.Context, req api.Request) (*api.Job, error)
	doExchange func(e *Engine, ctx context.Context, req api.Request, in api.Schema) (*api.Exchange, error)
	doUpload   func(e *Engine, req api.Request, in api.Schema) (api.Upload, error)
)

// handlers are the operations by their names.
var handlers = map[string]handler{
	"Sample":           {job: job((*Engine).prepareSample), exchange: exchange((*Engine).exchangeSample)},
	"EvaluateSchedule": {job: job((*Engine).prepareEvaluateSchedule)},
	"TrainStep":        {job: job((*Engine).prepareTrainStep), exchange: exchange((*Engine).exchangeTrainStep)},
	"WatchRun":         {job: job((*Engine).prepareWatchRun)},
	"Denoise":          {exchange: exchange((*Engine).exchangeDenoise)},
	"ScheduleGradient": {exchange: exchange((*Engine).exchangeScheduleGradient)},
	"RemoteSchedule":   {exchange: exchange((*Engine).exchangeRemoteSchedule)},
	"EvaluateModel":    {job: job((*Engine).prepareEvaluateModel)},
	"Predict":          {job: job((*Engine).preparePredict)},
	"BenchSchedule":    {job: job((*Engine).prepareBenchSchedule)},
	"Dataset":          {job: job((*Engine).prepareDataset)},
	"Basis":            {job: job((*Engine).prepareBasis)},

	"Model": {job: job((*Engine).prepareModel)},

	"PutModel":      {upload: upload(uploads.Model)},
	"PutConditions": {upload: upload(uploads.Conditions)},
	"PutDataset":    {upload: upload(uploads.Dataset)},
	"PutSchedule":   {upload: upload(uploads.Schedule)},
	"PutBasis":      {upload: upload(uploads.Basis)},

	"ServerInfo":       {action: ask((*Engine).serverInfo)},
	"ListModels":       {action: ask((*Engine).listModels)},
	"DescribeModel":    {action: ask((*Engine).describeModel)},
	"LoadModel":        {action: ask((*Engine).loadModel)},
	"UnloadModel":      {action: ask((*Engine).unloadModel)},
	"DeleteModel":      {action: ask((*Engine).deleteModel)},
	"MakeModel":        {action: action((*Engine).makeModel)},
	"ListSchedules":    {action: ask((*Engine).listSchedules)},
	"MakeSchedule":     {action: action((*Engine).makeSchedule)},
	"ExportSchedule":   {action: ask((*Engine).exportSchedule)},
	"ExportStart":      {action: ask((*Engine).exportStart)},
	"ExportStatistics": {action: ask((*Engine).exportStatistics)},
	"PlanSampler":      {action: ask((*Engine).planSampler)},
	"ImportSchedule":   {action: ask((*Engine).importSchedule)},
	"DeleteSchedule":   {action: ask((*Engine).deleteSchedule)},
	"ListBases":        {action: ask((*Engine).listBases)},
	"MakeBasis":        {action: action((*Engine).makeBasis)},
	"DeleteBasis":      {action: ask((*Engine).deleteBasis)},
	"ListDatasets":     {action: ask((*Engine).listDatasets)},
	"MakeDataset":      {action: action((*Engine).makeDataset)},
	"DeleteDataset":    {action: ask((*Engine).deleteDataset)},
	"ListRuns":         {action: ask((*Engine).listRuns)},
	"GetRun":           {action: ask((*Engine).getRun)},
	"CreateRun":        {action: action((*Engine).createRun)},
	"StartRun":         {action: ask((*Engine).startRun)},
	"PauseRun":         {action: ask((*Engine).pauseRun)},
	"CancelRun":        {action: ask((*Engine).cancelRun)},
	"DeleteRun":        {action: ask((*Engine).deleteRun)},
	"SaveModel":        {action: ask((*Engine).saveModel)},
}

// request is a pointer to a request of type R.
type request[R any] interface {
	*R
	api.Request
}

// given returns the request of a call as what the operation takes.
func given[R any, P request[R]](req api.Request) (R, error) {
	p, ok := req.(P)
	if !ok {
		var none R
		return none, fmt.Errorf("engine: a request of type %T, want %T", req, p)
	}
	return *p, nil
}

func action[R any, P request[R]](f func(*Engine, context.Context, R, func(api.Meta)) (any, error)) doAction {
	return func(e *Engine, ctx context.Context, req api.Request, progress func(api.Meta)) (any, error) {
		r, err := given[R, P](req)
		if err != nil {
			return nil, err
		}
		return f(e, ctx, r, progress)
	}
}

// ask is an action without progress.
func ask[R any, P request[R]](f func(*Engine, context.Context, R) (any, error)) doAction {
	return action[R, P](func(e *Engine, ctx context.Context, req R, _ func(api.Meta)) (any, error) {
		return f(e, ctx, req)
	})
}

func job[R any, P request[R]](f func(*Engine, context.Context, R) (*api.Job, error)) doJob {
	return func(e *Engine, ctx context.Context, req api.Request) (*api.Job, error) {
		r, err := given[R, P](req)
		if err != nil {
			return nil, err
		}
		return f(e, ctx, r)
	}
}

func exchange[R any, P request[R]](f func(*Engine, context.Context, R, api.Schema) (*api.Exchange, error)) doExchange {
	return func(e *Engine, ctx context.Context, req api.Request, in api.Schema) (*api.Exchange, error) {
		r, err := given[R, P](req)
		if err != nil {
			return nil, err
		}
		return f(e, ctx, r, in)
	}
}

func upload[R any, P request[R]](
	f func(c *catalog.Catalog, budget *uploads.Budget, req R, in api.Schema) (api.Upload, error),
) doUpload {
	return func(e *Engine, req api.Request, in api.Schema) (api.Upload, error) {
		r, err := given[R, P](req)
		if err != nil {
			return nil, err
		}
		return f(e.catalog, &e.uploads, r, in)
	}
}

// handlerOf returns what does an operation by a way, chosen by has.
func handlerOf(call api.Call, way api.Way, has func(handler) bool) (handler, error) {
	h, known := handlers[call.Op.Name]
	if !known || !has(h) {
		return h, api.Errorf(api.OpNotFound, "There is no %s %q", way, call.Op.Name)
	}
	return h, nil
}

// Operations returns the contract's operations, all of which the engine does.
func (e *Engine) Operations() api.Table { return api.Operations() }

// Action does an operation that speaks JSON and returns the object to reply with. Long ones call progress, which may be
// nil, now and then.
func (e *Engine) Action(ctx context.Context, call api.Call, progress func(api.Meta)) (any, error) {
	h, err := handlerOf(call, api.ByAction, func(h handler) bool { return h.action != nil })
	if err != nil {
		return nil, err
	}
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
	reply, err := h.action(e, ctx, call.Request, progress)
	return reply, explain.Error(err)
}

// Prepare checks and prices an operation that gives rows. The context bounds the preparation alone.
func (e *Engine) Prepare(ctx context.Context, call api.Call) (*api.Job, error) {
	h, err := handlerOf(call, api.ByGet, func(h handler) bool { return h.job != nil })
	if err != nil {
		return nil, err
	}
	job, err := h.job(e, ctx, call.Request)
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
	h, err := handlerOf(call, api.ByExchange, func(h handler) bool { return h.exchange != nil })
	if err != nil {
		return nil, err
	}
	leave, err := e.enter(call.Op)
	if err != nil {
		return nil, err
	}
	x, err := h.exchange(e, ctx, call.Request, in)
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
func (e *Engine) Put(_ context.Context, call api.Call, in api.Schema) (api.Upload, error) {
	h, err := handlerOf(call, api.ByPut, func(h handler) bool { return h.upload != nil })
	if err != nil {
		return nil, err
	}
	u, err := h.upload(e, call.Request, in)
	if err != nil {
		return nil, explain.Error(err)
	}
	return explained{u}, nil
}

// explained is an upload whose errors are the contract's.
type explained struct{ api.Upload }

// Write implements api.Upload.
func (u explained) Write(b api.Batch) error { return explain.Error(u.Upload.Write(b)) }

// Commit implements api.Upload.
func (u explained) Commit() (int64, error) {
	rows, err := u.Upload.Commit()
	return rows, explain.Error(err)
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
