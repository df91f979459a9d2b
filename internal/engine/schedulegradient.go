package engine

import (
	"context"
	"strconv"
	"sync"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/batch"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/input"
	"github.com/anisoflight/anisoflight/internal/engine/remote"
	"github.com/anisoflight/anisoflight/internal/engine/reply"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train/data"
)

// gradient is an open ScheduleGradient exchange. It adds up the gradient with respect to the knots' ln g over all rows.
type gradient struct {
	e     *Engine
	req   api.ScheduleGradient
	model *catalog.Model
	on    *kernels.Model
	sched catalog.Schedule
	in    api.Schema
	from  data.Layout

	mu    sync.Mutex
	rows  int
	dlogg [][][]float64 // [row][subspace][knot], summed over rows
}

// exchangeScheduleGradient estimates the gradient of the trajectory loss with respect to a schedule.
func (e *Engine) exchangeScheduleGradient(
	_ context.Context, req api.ScheduleGradient, in api.Schema,
) (*api.Exchange, error) {
	m, err := e.catalog.Model(req.Model)
	if err != nil {
		return nil, err
	}
	x := &gradient{e: e, req: req, model: m, in: in}
	if x.sched, x.on, err = e.catalog.ScheduleOn(req.Schedule, m); err != nil {
		return nil, err
	}
	if err := x.checkInput(); err != nil {
		return nil, err
	}
	for row := range x.sched.Rows() {
		x.dlogg = append(x.dlogg, nil)
		for j := range x.sched.J() {
			tau, _ := x.sched.At(row, j).Knots()
			x.dlogg[row] = append(x.dlogg[row], make([]float64, len(tau)))
		}
	}
	j := []int{x.sched.J()}
	out := api.Schema{
		Columns: []api.Column{
			{Name: "loss", Type: api.Float64},
			{Name: "A", Type: api.Float64, Kind: api.List, Shape: j},
			{Name: "B", Type: api.Float64, Kind: api.List, Shape: j},
		},
		Metadata: reply.OfModel(m, "ScheduleGradient", req),
	}
	if err := m.Hold(); err != nil {
		return nil, err
	}
	return &api.Exchange{Out: out, Window: reply.Window, Close: m.Release, Do: x.answer, End: x.end}, nil
}

// checkInput checks the columns; the three images have one layout.
func (x *gradient) checkInput() error {
	var want []api.Column
	images := []string{"image", "noise", "probe"}
	for _, name := range images {
		want = append(want, api.Column{Name: name, Type: api.Float32, Kind: api.Tensor})
	}
	want = append(want, api.Column{Name: "t", Type: api.Float64}, api.Column{Name: "label", Type: api.Int32})
	if err := input.Want(x.in, want, nil); err != nil {
		return err
	}
	for i, name := range images {
		l, err := input.Fits(x.model, x.in.Columns[x.in.Index(name)])
		if err != nil {
			return err
		}
		if i > 0 && l != x.from {
			return api.Errorf(api.BadTensor, "Columns image and %s differ in their layout", name)
		}
		x.from = l
	}
	return nil
}

// answer estimates one batch, a bucket at a time.
func (x *gradient) answer(ctx context.Context, in api.Batch, emit func(api.Event) error) error {
	h, w, c := x.model.ImageSize()
	size, j := h*w*c, x.sched.J()
	images := map[string][]float32{}
	for _, name := range []string{"image", "noise", "probe"} {
		v := api.ColumnOf[float32](x.in, in, name)
		if err := input.Finite(name, v, size); err != nil {
			return err
		}
		images[name] = data.ToHWC(v, x.from, h, w, c)
	}
	labels, err := input.Int32s(x.in, in, "label", 0)
	if err != nil {
		return err
	}
	if err := input.CheckLabels(labels, x.model.Shape.Labels); err != nil {
		return err
	}
	t := api.ColumnOf[float64](x.in, in, "t")
	at, err := x.levels(t, labels)
	if err != nil {
		return err
	}
	loss, a, b := make([]float64, 0, in.Rows), make([]float64, 0, in.Rows*j), make([]float64, 0, in.Rows*j)
	for done := 0; done < in.Rows; {
		bucket := batch.BucketFor(x.on, in.Rows-done)
		n := min(bucket, in.Rows-done)
		image := func(name string) []float32 { return batch.Pad(images[name], size, done, n, bucket) }
		level := func(v []float64) []float64 { return batch.Pad(v, j, done, n, bucket) }
		var terms *kernels.Terms
		err := x.e.queue.Take(ctx, func() (err error) {
			terms, err = x.on.Estimate(ctx, x.model.Weights(), kernels.EstimateInput{
				Mode: kernels.Mode(x.req.Mode), X0: image("image"), Eps: image("noise"), Probe: image("probe"),
				G: level(at.g), Omega: level(at.omega), Labels: batch.Pad(labels, 1, done, n, bucket),
			})
			return err
		})
		if err != nil {
			return err
		}
		l, da, db := terms.Assemble(level(at.g), level(at.gdot), x.req.C)
		loss, a, b = append(loss, l[:n]...), append(a, da[:n*j]...), append(b, db[:n*j]...)
		done += n
	}
	if in.Rows == 0 {
		return nil
	}
	x.collect(at.row, t, a, b)
	return emit(api.Event{Batch: &api.Batch{Rows: in.Rows, Cols: []any{loss, a, b}}, Meta: api.Done(int64(in.Rows), -1)})
}

// exchangeRemoteSchedule makes a schedule for a network that the client evaluates.
func (e *Engine) exchangeRemoteSchedule(_ context.Context, req api.RemoteSchedule, in api.Schema,
) (*api.Exchange, error) {
	s, err := remote.Open(e.catalog, req, in)
	if err != nil {
		return nil, err
	}
	out := api.Schema{
		Columns:  s.Questions(),
		Metadata: reply.Metadata("RemoteSchedule", req, "subspaces", strconv.Itoa(s.J()), "estimator", string(s.Mode())),
	}
	return &api.Exchange{
		Out: out, Window: 1, BatchBytes: questionBytes, Begin: s.Begin, Do: s.Answer, End: s.End, Close: s.Close,
	}, nil
}

// questionBytes is more than a question has: it travels as one message.
const questionBytes = 32 << 20

// levels are the noise variances, their speeds and the loss weights [B·J] of a batch, and each sample's row.
type levels struct {
	g, gdot, omega []float64
	row            []int
}

func (x *gradient) levels(t []float64, labels []int32) (levels, error) {
	j, T := x.sched.J(), x.sched.T()
	at := levels{
		g: make([]float64, len(t)*j), gdot: make([]float64, len(t)*j), omega: make([]float64, len(t)*j),
		row: make([]int, len(t)),
	}
	for i := range t {
		if !(t[i] >= 0 && t[i] <= T) {
			return at, api.Errorf(api.BadTensor, "Column \"t\" holds %v in row %d, outside 0 … %g", t[i], i, T)
		}
		row, err := x.sched.Row(int(labels[i]))
		if err != nil {
			return at, err
		}
		at.row[i] = row
		x.sched.Eval(row, t[i], at.g[i*j:(i+1)*j], at.gdot[i*j:(i+1)*j])
		for q := i * j; q < (i+1)*j; q++ {
			at.omega[q] = schedule.Omega(at.g[q], at.gdot[q], x.req.C)
		}
	}
	return at, nil
}

// collect adds A dg + B dġ of every sample to the gradient with respect to its path's ln g.
func (x *gradient) collect(rows []int, t, a, b []float64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	n := x.sched.J()
	for i, row := range rows {
		for j := range n {
			x.sched.At(row, j).Chain(t[i], a[i*n+j], b[i*n+j], x.dlogg[row][j])
		}
	}
	x.rows += len(rows)
}

// end returns the gradients of the mean loss: d_logg for every schedule, d_theta for those that θ made.
func (x *gradient) end(context.Context) (map[string]any, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	scale := 1 / float64(max(1, x.rows))
	for _, row := range x.dlogg {
		for _, path := range row {
			for k := range path {
				path[k] *= scale
			}
		}
	}
	out := map[string]any{"d_logg": x.dlogg}
	theta := x.sched.Theta()
	if theta == nil {
		return out, nil
	}
	dtheta := make([][][]float64, len(theta))
	for row := range theta {
		for j, th := range theta[row] {
			d := make([]float64, len(th))
			g0 := x.sched.At(row, j).G0()
			th.Pull(x.sched.T(), g0, x.dlogg[row][j], d)
			dtheta[row] = append(dtheta[row], d)
		}
	}
	out["d_theta"] = dtheta
	return out, nil
}
