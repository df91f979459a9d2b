package train

import (
	"cmp"
	"context"
	"errors"
	"math"

	"github.com/anisoflight/anisoflight/internal/base/setting"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/kernels/processes"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/data"
	"github.com/anisoflight/anisoflight/train/passes"
)

// Sources are what a configuration names.
type Sources struct {
	Device  *device.Device   // the first in use; a run takes one for each part of a batch, if there are as many
	Dataset *data.Dataset    // of Config.Dataset
	World   *processes.World // processes that step the run together, each with the whole data set; nil for one process

	Model         *checkpoint.Model  // of Config.Model; nil if Config.Network describes a new one
	Schedule      *schedule.Schedule // of Config.Schedule; nil for none
	ScheduleBasis *basis.Basis       // dense basis of Schedule; nil for a basis by formula
	Basis         *basis.Basis       // dense basis of Config.Family; nil for a basis by formula

	// Analytic replaces the network in laboratories. A run with one has no model to save and cannot train the network.
	Analytic kernels.Network
}

// newRun checks a configuration against its sources, and puts the network on the devices. A resumed run keeps the
// division of its batches into parts.
func newRun(cfg Config, src Sources, resumed bool) (r *Run, err error) {
	if cfg, err = cfg.Resolve(); err != nil {
		return nil, err
	}
	r = &Run{data: src.Dataset}
	flow, shape, b, err := r.source(cfg, src)
	if err != nil {
		return nil, err
	}
	classes := shape.Labels
	if classes == 0 {
		classes = r.data.Classes()
	}
	start, err := cfg.stageSchedule(src, r.data, b, classes, shape.Range)
	if err != nil {
		return nil, err
	}
	r.familyBasis = denseBasis(b)
	switch {
	case cfg.Stage != Pretrain:
		r.scheduleBasis = r.familyBasis
	case src.Schedule != nil: // kept for the model that is saved
		r.scheduleBasis = src.ScheduleBasis
	case src.Model != nil:
		r.scheduleBasis = src.Model.Basis
	}
	cfg.RatioEmbedding = cmp.Or(cfg.RatioEmbedding, new(flow.Spec().Ratios > 0))
	seesRatios := cfg.Stage == Anisotropic && *cfg.TrainNetwork && *cfg.RatioEmbedding
	cfg.PStdSubspace = cmp.Or(cfg.PStdSubspace, new(pick(seesRatios, 0.5, 0)))
	if ratios := flow.Spec().Ratios; cfg.asksForRatios() && ratios != b.J()-1 {
		return nil, setting.Errorf("ratio_embedding",
			"must be off for a network of %d log-ratios and a family of %d subspaces", ratios, b.J())
	}
	if r.model, err = kernels.NewModelAt(kernels.Precision(cfg.Precision), src.Device, flow, b); err != nil {
		return nil, err
	}
	if err := r.open(cfg, src, start, resumed); err != nil {
		r.model.Close()
		return nil, err
	}
	return r, nil
}

// source sets the network that the run starts from and the images in its units, and returns its flow and shape on the
// basis of the family.
func (r *Run) source(cfg Config, src Sources) (flow kernels.Network, shape kernels.Shape, b *basis.Basis, err error) {
	if flow = src.Analytic; flow != nil {
		spec := flow.Spec()
		shape = kernels.Shape{
			Height: spec.Height, Width: spec.Width, Channels: spec.Channels, Labels: spec.Labels, Range: spec.Range,
		}
	} else {
		if r.net, r.initial, err = network(cfg, src); err != nil {
			return nil, shape, nil, err
		}
		if r.net, r.data, err = InUnits(r.net, r.data); err != nil {
			return nil, shape, nil, err
		}
		shape = r.net.Shape()
	}
	if b, err = familyBasis(cfg, src.Basis, shape.Height, shape.Width); err != nil {
		return nil, shape, nil, err
	}
	if err := checkData(cfg, r.data, b, shape); err != nil {
		return nil, shape, nil, err
	}
	if flow == nil {
		if flow, err = r.net.NetworkOn(r.initial, b); err != nil {
			return nil, shape, nil, setting.Errorf("family", "cannot be used: %v", err)
		}
	}
	return flow, shape, b, nil
}

// open divides the batches into parts, and makes a trainer on each device of the run.
func (r *Run) open(cfg Config, src Sources, start *schedule.Schedule, resumed bool) (err error) {
	cfg.Precision = string(r.model.Precision())
	if r.memory, err = cfg.fitDevices(r.model, src.World.Size(), !resumed); err != nil {
		return err
	}
	if r.memory.Microbatch < cfg.Batch {
		cfg.Microbatch = r.memory.Microbatch
	}
	others := src.Device.Peers()[1:partOf(r.memory.Devices, src.World.Size())]
	if r.trainer, err = r.model.NewTrainer(cfg.Trainer(), r.initial, others...); err != nil {
		return err
	}
	if src.World != nil {
		r.trainer.Join(src.World)
	}
	r.learner, r.order = newLearner(cfg, start), data.NewOrder(cfg.Seed, r.data.Len(), cfg.Flip)
	r.peak = func() (float64, bool) {
		peak, ok := src.Device.Peak()
		if src.Device.HostVisible() { // its devices share the processors
			return peak, ok
		}
		return peak * float64(r.trainer.Len()), ok
	}
	return nil
}

// denseBasis returns b if it is dense, nil if it is given by a formula.
func denseBasis(b *basis.Basis) *basis.Basis {
	if b.Kind() == basis.KindDense {
		return b
	}
	return nil
}

// familyBasis returns the basis of the configuration's family for images of h×w: by formula if it has one, else stored.
func familyBasis(c Config, stored *basis.Basis, h, w int) (*basis.Basis, error) {
	b, formula, err := basis.Formula(c.Family.Basis, h, w, c.Family.K, c.Family.Cuts)
	if !formula {
		b = stored
	}
	switch {
	case err != nil:
		return nil, setting.Errorf("family", "cannot be used: %v", err)
	case b == nil:
		return nil, setting.Errorf("family", "must have a basis that is stored or given by a formula, got %q", c.Family.Basis)
	}
	switch {
	case b.H() != h || b.W() != w:
		return nil, setting.Errorf("family", "must have a basis for images of %d×%d pixels, got %q for %d×%d", h, w,
			c.Family.Basis, b.H(), b.W())
	case c.Stage == Anisotropic && b.J() < 2:
		return nil, setting.Errorf("family", "must have two subspaces in the stage anisotropic, got basis %q of one",
			c.Family.Basis)
	case b.Kind() == basis.KindDense && c.Family.K != 0 && c.Family.K != b.K():
		return nil, setting.Errorf("family.k", "must be the %d of basis %q or left out, got %d", b.K(), c.Family.Basis,
			c.Family.K)
	}
	return b, nil
}

// network returns the network that the run starts from, with its values.
func network(c Config, src Sources) (kernels.Architecture, [][]float32, error) {
	var net kernels.Architecture
	var values [][]float32
	switch {
	case src.Model != nil:
		net, values = src.Model.Net, src.Model.Values
	case len(c.Network) > 0:
		var err error
		if net, err = checkpoint.ParseNetwork(c.Network); err != nil {
			return nil, nil, networkError(err)
		}
	default:
		return nil, nil, setting.Errorf("network",
			"must be the config.json of a network if no model is given to start from, got none")
	}
	learned, ok := net.(kernels.Trainable)
	switch {
	case !ok && src.Model == nil:
		return nil, nil, setting.Errorf("network", "must have parameters, got a %s, which is exact; give it as model",
			net.Shape().Type)
	case !ok:
		return net, values, c.checkFrozen()
	}
	byDefault := c.RatioEmbedding == nil && c.Stage == Anisotropic
	if (byDefault || c.asksForRatios()) && learned.Ratios() == 0 {
		b, err := familyBasis(c, src.Basis, net.Shape().Height, net.Shape().Width)
		if err != nil {
			return nil, nil, err
		}
		switch with, err := learned.WithRatios(b.J() - 1); {
		case err == nil:
			learned = with
		case !byDefault: // by default, a note says that the network does not see them
			return nil, nil, networkError(err)
		}
	}
	if src.Model == nil {
		for _, p := range learned.Params() {
			if p.Frozen && p.Init == nil {
				return nil, nil, setting.Errorf("network", "must be a config.json whose values can all be drawn, got one with "+
					"the constant %s, whose values are in the weights; put the network, and give it as model", p.Name)
			}
		}
		if err := c.fitsState(learned, src.Device); err != nil {
			return nil, nil, err
		}
		return learned, learned.Init(c.Seed), nil
	}
	values, err := learned.Load(net.State(values))
	if err != nil {
		return nil, nil, setting.Errorf("model", "cannot be used: %v", err)
	}
	return learned, values, nil
}

// checkFrozen checks a run of a network whose flow is exact: there is nothing to train, and it sees all of g.
func (c Config) checkFrozen() error {
	switch {
	case c.Stage == Pretrain:
		return setting.Errorf("stage", "must not be pretrain for a mixture, which is exact")
	case *c.TrainNetwork:
		return setting.Errorf("train_network", "must be false for a mixture, which is exact")
	case c.asksForRatios():
		return setting.Errorf("ratio_embedding", "must be false for a mixture, which sees all of g")
	}
	return nil
}

// asksForRatios reports whether the network is to see the ratios of the g_j.
func (c Config) asksForRatios() bool { return c.RatioEmbedding != nil && *c.RatioEmbedding }

func networkError(err error) error {
	var e *nn.ConfigError
	if errors.As(err, &e) && e.Field != "" {
		return setting.Errorf("network."+e.Field, "cannot be used: %s", e.Reason)
	}
	return setting.Errorf("network", "cannot be used: %v", err)
}

// stageSchedule returns the schedule that the stage starts from, with a path for each row and subspace of the family.
// It sets T, G0, Knots, Init and C of the configuration. The defaults of T and C are measured on d.
//
// In pretrain the schedule is only kept for the model that is saved: the named one, that of the model, or nil.
func (c *Config) stageSchedule(src Sources, d *data.Dataset, b *basis.Basis, classes int, known schedule.Range,
) (*schedule.Schedule, error) {
	start, err := c.givenSchedule(src)
	if err != nil || c.Stage == Pretrain {
		return start, err
	}
	switch {
	case start != nil:
		c.T = start.T()
	case c.Init == initGeodesic && src.Model != nil && src.Model.Schedule != nil:
		c.T = cmp.Or(c.T, src.Model.Schedule.T())
	}
	if err := passes.DefaultScale(context.Background(), &c.T, &c.C, d, known); err != nil {
		return nil, err
	}
	if start == nil {
		if start, err = c.initialSchedule(src, known); err != nil {
			return nil, err
		}
	}
	if c.Knots == 0 {
		c.Knots = schedule.DefaultKnots
		if theta := start.Theta(); theta != nil {
			c.Knots = len(theta[0][0]) + 1
		}
	}
	if start, err = start.WithTheta(c.Knots); err != nil {
		return nil, setting.Errorf("schedule", "cannot be used: %v", err)
	}
	var labels []int
	if c.Family.PerClass {
		if classes == 0 {
			return nil, setting.Errorf("family", "must be shared if there are no classes, got one per class")
		}
		for label := range classes {
			labels = append(labels, label)
		}
	}
	if start, err = start.Expand(c.Family, labels, b.J()); err != nil {
		return nil, setting.Errorf("schedule", "cannot be used: %v", err)
	}
	c.T, c.G0 = start.T(), start.At(0, 0).G0()
	if err := start.Check(known); err != nil {
		return nil, setting.Errorf("schedule", "cannot be used: %v", err)
	}
	return start, nil
}

// givenSchedule returns the named schedule, or by default that of the model, unless the stage has its own T or G0; nil
// for none.
func (c *Config) givenSchedule(src Sources) (*schedule.Schedule, error) {
	given := src.Schedule
	if given == nil && c.Init == "" && src.Model != nil {
		given = src.Model.Schedule
	}
	if given == nil || c.Stage == Pretrain {
		return given, nil
	}
	switch field, have := c.disagrees(given); {
	case field == "":
		return given, nil
	case src.Schedule != nil:
		return nil, setting.Errorf(field, "must be %g, that of the schedule %q, or left out", have, c.Schedule)
	}
	return nil, nil
}

// initialSchedule returns a path of the form Init, and sets G0, Knots and Init if they are left out. T is set.
func (c *Config) initialSchedule(src Sources, known schedule.Range) (*schedule.Schedule, error) {
	c.G0 = cmp.Or(c.G0, known.G0())
	c.Knots = cmp.Or(c.Knots, schedule.DefaultKnots)
	c.Init = cmp.Or(c.Init, pick(src.Model != nil, initGeodesic, "edm"))
	if c.G0 >= c.T {
		return nil, setting.Errorf("g0", "must lie below T = %g, got %g", c.T, c.G0)
	}
	form := c.Init
	if form == initGeodesic { // measured before the first step, in place of this
		form = "log-linear"
	}
	theta, err := schedule.InitialTheta(form, c.Knots, c.T, c.G0)
	if err != nil {
		return nil, setting.Errorf("init", "cannot be used: %v", err)
	}
	s, err := schedule.FromTheta(schedule.Family{Basis: "none"}, nil, [][]schedule.Theta{{theta}}, c.T, c.G0)
	if err != nil {
		return nil, setting.Errorf("init", "cannot be used: %v", err)
	}
	return s, nil
}

// disagrees returns the field, T or G0, that is set and differs from s, and the value of s.
func (c Config) disagrees(s *schedule.Schedule) (field string, have float64) {
	if have = s.T(); c.T != 0 && !almostEqual(c.T, have) {
		return "T", have
	}
	if have = s.At(0, 0).G0(); c.G0 != 0 && !almostEqual(c.G0, have) {
		return "g0", have
	}
	return "", 0
}

func almostEqual(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Abs(b) }

// InUnits returns a network and its images with the same normalization: that of the network, or that of the images if
// the network has none.
func InUnits(net kernels.Architecture, d *data.Dataset) (kernels.Architecture, *data.Dataset, error) {
	switch n := net.Shape().Normalization; {
	case d == nil:
	case n != nil:
		normalized, err := d.WithNormalization(n)
		if bad, ok := errors.AsType[*data.Error](err); ok {
			return nil, nil, setting.Errorf("dataset", "cannot serve a network of data in their own units: %s", bad.Msg)
		}
		return net, normalized, err
	case d.Normalization() != nil && d.Channels() == net.Shape().Channels: // checkData refuses other channels
		net = net.Normalized(d.Normalization())
	}
	return net, d, nil
}

// checkData checks that the data set serves the network and the family.
func checkData(c Config, d *data.Dataset, b *basis.Basis, s kernels.Shape) error {
	switch {
	case d == nil:
		return setting.Errorf("dataset", "must be given, got none")
	case d.Height() != s.Height || d.Width() != s.Width || d.Channels() != s.Channels:
		return setting.Errorf("dataset", "must have images of %d×%d pixels in %d channels, as the network, got %d×%d in %d",
			s.Height, s.Width, s.Channels, d.Height(), d.Width(), d.Channels())
	case s.Labels > 0 && d.Classes() > s.Labels:
		return setting.Errorf("dataset", "must have labels up to %d, as the network, got %d", s.Labels-1, d.Classes()-1)
	}
	for i := range d.Len() {
		label := d.Label(i)
		switch {
		case label < 0 && c.Family.PerClass && c.Stage != Pretrain:
			return setting.Errorf("dataset", "must have a label for each image for a schedule per class, got none for image %d",
				i)
		case label < 0 && b.PerClass():
			return setting.Errorf("dataset", "must have a label for each image for a basis per class, got none for image %d", i)
		case b.PerClass() && !b.Knows(int(label)):
			return setting.Errorf("family",
				"must have a basis with vectors for every class, got %q with none for class %d of image %d", c.Family.Basis, label,
				i)
		}
	}
	return nil
}

// errNoModel is returned if a run without a network is asked for its model.
var errNoModel = errors.New("train: a run with an analytic network has no model to save")
