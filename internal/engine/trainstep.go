package engine

import (
	"context"
	"sync"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/base/safely"
	"github.com/anisoflight/anisoflight/internal/engine/input"
	"github.com/anisoflight/anisoflight/internal/engine/reply"
	"github.com/anisoflight/anisoflight/internal/engine/runs"
	"github.com/anisoflight/anisoflight/train/data"
)

// prepareTrainStep takes steps of the run's own batches.
func (e *Engine) prepareTrainStep(_ context.Context, req api.TrainStep) (*api.Job, error) {
	r, err := e.runs.Named(req.Run)
	if err != nil {
		return nil, err
	}
	if err := r.MayStep(); err != nil {
		return nil, err
	}
	schema := api.Schema{Columns: runs.RowColumns(), Metadata: reply.Metadata("TrainStep", req, "run", req.Run)}
	bytes, err := e.price(schema, int64(req.Steps))
	if err != nil {
		return nil, err
	}
	return &api.Job{
		Schema: schema, Rows: int64(req.Steps), Bytes: bytes,
		Run: func(ctx context.Context, emit func(api.Event) error) (err error) {
			if err := r.Begin(); err != nil {
				return err
			}
			defer func() {
				r.End()
				if unkept := r.Store(ctx); err == nil {
					err = unkept
				}
			}()
			for i := range req.Steps {
				if err := r.TakeStep(ctx, nil, nil, emit, int64(i+1), int64(req.Steps)); err != nil {
					return err
				}
			}
			return nil
		},
	}, nil
}

// prepareWatchRun follows a run's rows.
func (e *Engine) prepareWatchRun(ctx context.Context, req api.WatchRun) (*api.Job, error) {
	r, err := e.runs.Named(req.Run)
	if err != nil {
		return nil, err
	}
	if err := r.History(ctx); err != nil {
		return nil, err
	}
	return &api.Job{Schema: watchSchema(req), Rows: -1, Bytes: -1, Run: func(ctx context.Context,
		emit func(api.Event) error,
	) error {
		return r.Watch(ctx, req.From, req.NoWait, emit)
	}}, nil
}

func watchSchema(req api.WatchRun) api.Schema {
	return api.Schema{Columns: runs.RowColumns(), Metadata: reply.Metadata("WatchRun", req, "run", req.Run)}
}

// stepping is an open TrainStep exchange.
type stepping struct {
	e       *Engine
	r       *runs.Run
	in      api.Schema
	image   api.Column
	from    data.Layout
	h, w, c int
	steps   int64

	mu    sync.Mutex
	holds bool // the run is noted as being stepped
	turn  int  // batches begun
}

// exchangeTrainStep takes one step on each batch that the caller sends.
func (e *Engine) exchangeTrainStep(_ context.Context, req api.TrainStep, in api.Schema) (*api.Exchange, error) {
	if req.Steps != 1 {
		return nil, api.Errorf(api.BadRequest, "In an exchange every batch is one step").WithHint("Leave out steps.")
	}
	r, err := e.runs.Named(req.Run)
	if err != nil {
		return nil, err
	}
	s := &stepping{e: e, r: r, in: in}
	if err := s.check(); err != nil {
		return nil, err
	}
	if err := s.hold(); err != nil {
		return nil, err
	}
	s.rest()
	out := api.Schema{Columns: runs.RowColumns(), Metadata: reply.Metadata("TrainStep", req, "run", req.Run)}
	return &api.Exchange{
		Out: out, Window: 2, Do: s.answer,
		End: func(ctx context.Context) (map[string]any, error) {
			s.end()
			return nil, r.Store(ctx)
		},
		Close: func() { // of a client that has left, too: what fails then is logged, and tried again
			s.end()
			_ = r.Store(context.Background())
		},
	}, nil
}

// hold notes that the run is being stepped, unless it is noted already.
func (s *stepping) hold() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn++
	if s.holds {
		return nil
	}
	err := s.r.Begin()
	s.holds = err == nil
	return err
}

// rest lets go of the run if no batch comes for a while: an exchange may stay open as long as its client likes, and
// keeps the run from being deleted or started only while it steps it.
func (s *stepping) rest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	turn := s.turn
	time.AfterFunc(s.e.cfg.StepIdle, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.turn == turn {
			_ = safely.Do(func() error {
				s.release()
				return nil
			})
		}
	})
}

// end lets go of the run when the exchange is over.
func (s *stepping) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release()
}

// release lets go of the run. The caller holds mu.
func (s *stepping) release() {
	if s.holds {
		s.holds = false
		s.r.End()
	}
}

// check checks the columns and the images' size.
func (s *stepping) check() (err error) {
	if err := input.Want(s.in, append(input.Images(), api.Column{Name: "label", Type: api.Int32}), nil); err != nil {
		return err
	}
	s.image = s.in.Columns[s.in.Index("image")]
	if s.from, s.h, s.w, s.c, err = input.ImageLayout(s.image); err != nil {
		return err
	}
	d, err := s.e.catalog.Dataset(s.r.Dataset())
	if err != nil {
		return err
	}
	if s.image.Type == api.Uint8 && d.Normalization() != nil {
		return api.Errorf(api.BadTensor, "Column \"image\" holds uint8, the run's images are float32 in units of their own")
	}
	if s.h != d.Height() || s.w != d.Width() || s.c != d.Channels() {
		return api.Errorf(api.BadTensor,
			"Column \"image\" holds images of %d×%d pixels in %d channels, the run's have %d×%d in %d",
			s.h, s.w, s.c, d.Height(), d.Width(), d.Channels()).WithHint("dim_names tell the order of the axes: [H W C] or " +
			"[C H W].")
	}
	return nil
}

// answer takes one step on one batch.
func (s *stepping) answer(ctx context.Context, in api.Batch, emit func(api.Event) error) error {
	if in.Rows == 0 {
		return nil
	}
	var images []float32
	switch v := in.Cols[s.in.Index("image")].(type) {
	case []float32:
		images = make([]float32, len(v)) // of our own: a step may overwrite them
		data.Reorder(images, v, s.from, data.HWC, s.h, s.w, s.c)
	case []uint8:
		images = make([]float32, len(v))
		data.Convert(images, v, s.from, data.HWC, s.h, s.w, s.c, data.FromUint8)
	}
	labels, err := input.Int32s(s.in, in, "label", 0)
	if err != nil {
		return err
	}
	if err := s.hold(); err != nil { // it may have been started or deleted meanwhile
		return err
	}
	defer s.rest()
	s.steps++
	return s.r.TakeStep(ctx, images, labels, emit, s.steps, -1)
}
