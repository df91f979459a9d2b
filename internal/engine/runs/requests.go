package runs

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/explain"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/data"
)

// Infos describes all runs.
func (s *Runs) Infos() []api.RunInfo {
	infos := []api.RunInfo{}
	for _, r := range s.All() {
		infos = append(infos, r.Info())
	}
	return infos
}

// Get describes a run with its configuration.
func (s *Runs) Get(_ context.Context, req api.RunName) (api.RunInfo, error) {
	r, err := s.Named(req.Run)
	if err != nil {
		return api.RunInfo{}, err
	}
	return r.infoWithConfig(), nil
}

// SaveModel saves the averaged network of a run, with its schedule, as a model. A run at work goes on after its present
// step.
func (s *Runs) SaveModel(ctx context.Context, req api.SaveModel) (info api.ModelInfo, err error) {
	r, err := s.Named(req.Run)
	if err != nil {
		return info, err
	}
	if err := s.cfg.Catalog.FreeModel(req.Name, req.Replace); err != nil { // before the work; checked again below
		return info, err
	}
	if state := r.snapshot.Load().resting; state == Created || state == Paused { // a run that has ended has been measured
		if err := r.do(ctx, func() error { return r.open(ctx) }); err != nil {
			return info, err
		}
		if err := r.look(ctx, true); err != nil {
			return info, err
		}
	}
	model, best, err := r.Model(ctx)
	if err != nil {
		return info, err
	}
	warnings := r.cfg.Warnings(r.snapshot.Load().rows)
	if !req.Force {
		why, err := r.divergence(ctx, model, best)
		switch {
		case ctx.Err() != nil:
			return info, ctx.Err()
		case why != "":
			return info, api.Errorf(api.NotFinite, "The model of the run %q is not saved: %s", r.name, why).
				WithHint("Begin again with lower learning rates; force saves it all the same.")
		case err != nil: // such as a device without room: what was learned is not lost to that
			s.log.Warn("a network is saved without a look at its answers", "run", r.name, "error", err)
			warnings = append(warnings, "the network is saved without a look at its answers: "+
				api.ErrorOf(explain.Error(err)).Message)
		}
	}
	model.Unseen = s.unseenBy(r.cfg, model)
	model.Schedule = madeFor(model.Schedule, req.Name)
	saved, err := s.cfg.Catalog.SaveModel(req.Name, req.Replace, model)
	if err != nil {
		return info, err
	}
	info = saved.Describe()
	info.Outcome = r.Info().Outcome
	info.Warning = strings.Join(warnings, "\n")
	return info, nil
}

// unseenBy returns the classes that had no images in a run's training, as far as its data set and the model that it
// started from are still stored.
func (s *Runs) unseenBy(cfg train.Config, m *checkpoint.Model) []int32 {
	classes := m.Net.Shape().Labels
	d, err := s.cfg.Catalog.Dataset(cfg.Dataset)
	if err != nil || classes == 0 {
		return nil
	}
	unseen := d.WithoutImages(classes)
	if cfg.Model == "" {
		return unseen
	}
	start, err := s.cfg.Catalog.Model(cfg.Model)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(unseen, func(label int32) bool { return !slices.Contains(start.Unseen, label) })
}

// divergence says why what a run would save has diverged, "" if it has not: a value, the measure of the state that the
// run keeps, or without one the last loss or an answer of the network is not finite. The weights may be finite all the
// same: a step whose gradient is not finite does not change them, and a network may overflow at some levels alone.
func (r *Run) divergence(ctx context.Context, m *checkpoint.Model, best *train.Outcome) (string, error) {
	for i, values := range m.Values {
		if tables.NotFinite(values, max(1, len(values))) > 0 {
			return fmt.Sprintf("its tensor %d holds values that are not finite", i), nil
		}
	}
	rows := r.snapshot.Load().rows
	switch n := len(rows); {
	case best != nil && best.Best.Diverged():
		return "the measure of the state that it keeps is not finite", nil
	case best != nil: // which asked the network at all levels
		return "", nil
	case n > 0 && lossNotFinite(rows[n-1]):
		return fmt.Sprintf("the loss of its last step, %d, is not finite (%g)", rows[n-1].Step, rows[n-1].Loss), nil
	}
	sigma, err := r.runs.overflow(ctx, m)
	if sigma == 0 || err != nil {
		return "", err
	}
	return fmt.Sprintf("the answer of the network at noise level %.3g is not finite", sigma), nil
}

// levelsAsked is the number of noise levels at which overflow asks a network.
const levelsAsked = 32

// overflow returns the lowest noise level at which a network's answer is not finite; 0 for none. It asks at levels over
// the network's range, on noise of the deviation of noisy images.
func (s *Runs) overflow(ctx context.Context, m *checkpoint.Model) (sigma float64, err error) {
	shape := m.Net.Shape()
	dev, err := s.cfg.Device()
	if err != nil {
		return 0, err
	}
	network, err := m.Net.NetworkOn(m.Values, basis.None(shape.Height, shape.Width))
	if err != nil {
		return 0, err
	}
	var net sampler.Network
	if net.Model, err = kernels.NewModelAt(s.cfg.Precision, dev, network, nil); err != nil {
		return 0, err
	}
	defer net.Model.Close()
	if net.Weights, err = net.Model.Upload(m.Values); err != nil {
		return 0, err
	}
	defer net.Weights.Release()
	lo, hi := shape.Range.Ends()
	n, x := net.Model.Pixels(), make([]float32, levelsAsked*net.Model.Pixels())
	g, labels := make([]float64, levelsAsked), make([]int32, levelsAsked)
	for i := range g {
		sigma := lo * math.Pow(hi/lo, float64(i)/(levelsAsked-1))
		g[i], labels[i] = sigma*sigma, int32(i%max(1, shape.Labels))
		image := x[i*n : (i+1)*n]
		sampler.DrawLatent(uint64(i), image)
		for k := range image {
			image[k] *= float32(math.Hypot(sigma, 0.5))
		}
	}
	denoised, _, _, err := sampler.Denoise(ctx, s.cfg.Batcher, net, x, g, labels)
	if err != nil {
		return 0, err
	}
	for i, v := range g {
		if tables.NotFinite(denoised[i*n:(i+1)*n], n) > 0 {
			return math.Sqrt(v), nil
		}
	}
	return 0, nil
}

func rowSchema(op string, request any, run string) api.Schema {
	return tables.SchemaOf[train.Row](tables.Metadata(op, request, "run", run))
}

// WatchSchema describes the rows of a run that is watched.
func WatchSchema(req api.WatchRun) api.Schema { return rowSchema("WatchRun", req, req.Run) }

// Watch follows a run's rows.
func (s *Runs) Watch(ctx context.Context, req api.WatchRun) (*api.Job, error) {
	r, err := s.Named(req.Run)
	if err != nil {
		return nil, err
	}
	if err := r.history(ctx); err != nil {
		return nil, err
	}
	return &api.Job{
		Schema: WatchSchema(req), Rows: -1, Bytes: -1,
		Run: func(ctx context.Context, emit func(api.Event) error) error {
			return r.watch(ctx, req.From, req.NoWait, emit)
		},
	}, nil
}

// TrainSteps takes steps of the run's own batches.
func (s *Runs) TrainSteps(_ context.Context, req api.TrainStep) (*api.Job, error) {
	r, err := s.Named(req.Run)
	if err != nil {
		return nil, err
	}
	if err := r.do(context.Background(), func() error { return r.mayWork(false) }); err != nil {
		return nil, err
	}
	run := func(ctx context.Context, emit func(api.Event) error) (err error) {
		release, err := r.beginStepping()
		if err != nil {
			return err
		}
		defer func() { err = cmp.Or(err, release()) }()
		for i := 0; i < req.Steps && err == nil; i++ {
			err = r.trainStep(ctx, nil, nil, emit, int64(i+1), int64(req.Steps))
		}
		return err
	}
	return tables.NewPricedJob(s.cfg.MaxBytes, rowSchema("TrainStep", req, req.Run), int64(req.Steps), run)
}

// TrainOn takes one step on each batch that the caller sends.
func (s *Runs) TrainOn(_ context.Context, req api.TrainStep, in api.Schema) (*api.Exchange, error) {
	if req.Steps != 1 {
		return nil, api.Errorf(api.BadRequest, "In an exchange every batch is one step").WithHint("Leave out steps.")
	}
	r, err := s.Named(req.Run)
	if err != nil {
		return nil, err
	}
	hwc, err := s.imagesFor(r, in)
	if err != nil {
		return nil, err
	}
	release, err := r.beginStepping()
	if err != nil {
		return nil, err
	}
	var steps int64
	return &api.Exchange{
		Out: rowSchema("TrainStep", req, req.Run), Window: 2,
		Do: func(ctx context.Context, b api.Batch, emit func(api.Event) error) error {
			if b.Rows == 0 {
				return nil
			}
			labels, err := tables.Int32s(in, b, "label", 0)
			if err != nil {
				return err
			}
			steps++
			return r.trainStep(ctx, hwc(b), labels, emit, steps, -1)
		},
		End:   func(context.Context) (map[string]any, error) { return nil, release() },
		Close: func() { _ = release() }, // of a client that has left, too: what fails then is logged, and tried again
	}, nil
}

// imagesFor checks the columns of the batches that step a run. It returns a function that copies their images as
// [H, W, C].
func (s *Runs) imagesFor(r *Run, in api.Schema) (func(api.Batch) []float32, error) {
	err := tables.CheckColumns(in, append(tables.ImageAlternatives(), api.Column{Name: "label", Type: api.Int32}), nil)
	if err != nil {
		return nil, err
	}
	index := in.Index("image")
	image := in.Columns[index]
	d, err := s.cfg.Catalog.Dataset(r.cfg.Dataset)
	if err != nil {
		return nil, err
	}
	h, w, c := d.Height(), d.Width(), d.Channels()
	layout, err := tables.CheckImageSize(image, "run", h, w, c)
	if err != nil {
		return nil, err
	}
	if image.Type == api.Uint8 && d.Normalization() != nil {
		return nil, api.Errorf(api.BadTensor,
			"Column \"image\" must be float32, in the units of the run's images, got uint8")
	}
	return func(b api.Batch) []float32 {
		images := make([]float32, b.Rows*h*w*c) // copied: a step may overwrite them
		switch v := b.Cols[index].(type) {
		case []float32:
			data.Reorder(images, v, layout, data.HWC, h, w, c)
		case []uint8:
			data.Convert(images, v, layout, data.HWC, h, w, c, data.FromUint8)
		}
		return images
	}, nil
}
