package train

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"runtime"
	"strconv"
	"sync"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/processes"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/data"
	"github.com/anisoflight/anisoflight/train/setting"
)

// Run is a training stage under way. It belongs to one goroutine, but for Snapshot.
type Run struct {
	learner

	data    *data.Dataset
	order   *data.Order
	net     kernels.Architecture // nil for an analytic network
	model   *kernels.Model       // owned
	trainer *kernels.Replicas

	basis  *basis.Basis // dense one that travels with sched; nil where its name says it all
	family *basis.Basis // dense one that the run computes with; nil where its name says it all

	initial [][]float32 // of the network, until the first step

	position uint64
	memory   Memory

	mu       sync.Mutex
	snapshot *Snapshot
}

// New checks the configuration against its sources and starts a run at step 0. An
// error in a field is a *[setting.Error].
func New(cfg Config, src Sources) (*Run, error) {
	cfg, err := cfg.Resolve()
	if err != nil {
		return nil, err
	}
	r := &Run{data: src.Dataset}
	var values [][]float32
	var shape kernels.Shape
	net := src.Analytic
	if net != nil {
		spec := net.Spec()
		shape = kernels.Shape{
			Height: spec.Height, Width: spec.Width, Channels: spec.Channels, Labels: spec.Labels,
			Range: spec.Range,
		}
	} else {
		if r.net, values, err = network(cfg, src); err != nil {
			return nil, err
		}
		if r.net, src.Dataset, err = InUnits(r.net, src.Dataset); err != nil {
			return nil, err
		}
		r.data = src.Dataset
		shape = r.net.Shape()
	}
	b, err := familyBasis(cfg, src.Basis, shape.Height, shape.Width)
	if err != nil {
		return nil, err
	}
	if err := checkData(cfg, src, b, shape); err != nil {
		return nil, err
	}
	if net == nil {
		if net, err = r.net.On(values, b); err != nil {
			return nil, setting.Errorf("family", "cannot be used: %v", err)
		}
	}
	classes := shape.Labels
	if classes == 0 {
		classes = src.Dataset.Classes()
	}
	if r.sched, r.cfg, err = startSchedule(cfg, src, b, classes, shape.Range); err != nil {
		return nil, err
	}
	if b.Kind() == basis.KindDense {
		r.family = b
	}
	switch {
	case cfg.Stage != Pretrain:
		r.basis = r.family
	case src.Schedule != nil: // it is kept for the model that is saved
		r.basis = src.ScheduleBasis
	case src.Model != nil:
		r.basis = src.Model.Basis
	}
	r.begin()
	if r.weights, err = newClassWeights(cfg, src.Dataset); err != nil {
		return nil, err
	}
	r.order = data.NewOrder(cfg.Seed, src.Dataset.Len(), cfg.Flip)
	if r.net != nil {
		r.initial = values
	}
	return r, r.open(src, net, b, values)
}

// open puts the network on the devices.
func (r *Run) open(src Sources, net kernels.Network, b *basis.Basis, values [][]float32) error {
	dev, err := src.Device, error(nil)
	if r.model, err = kernels.NewModelAt(kernels.Precision(r.cfg.Precision), dev, net, b); err != nil {
		return err
	}
	r.cfg.Precision = string(r.model.Precision())
	if spec := net.Spec(); r.cfg.RatioEmbedding && spec.Ratios != b.J()-1 {
		r.model.Close()
		return setting.Errorf("ratio_embedding", "must be off for a network of %d log-ratios and a family of %d subspaces",
			spec.Ratios, b.J())
	}
	if r.memory, err = r.cfg.fitDevices(r.model, src.World.Size(), !src.goesOn); err == nil {
		if r.memory.Microbatch < r.cfg.Batch {
			r.cfg.Microbatch = r.memory.Microbatch
		}
		own := partOf(r.memory.Devices, src.World.Size())
		r.trainer, err = r.model.NewReplicas(dev.Peers()[:own], r.cfg.Trainer(), values)
	}
	if err != nil {
		r.model.Close()
		return err
	}
	if src.World != nil {
		r.trainer.Join(src.World)
	}
	r.peak = func() (float64, bool) {
		peak, ok := dev.Peak()
		if dev.HostVisible() { // whose devices share the processors
			return peak, ok
		}
		return peak * float64(r.trainer.Len()), ok
	}
	return nil
}

// Trainer returns what steps of a resolved configuration compute.
func (c Config) Trainer() kernels.TrainerConfig {
	return kernels.TrainerConfig{
		Mode:         kernels.Mode(c.Estimator),
		TrainNetwork: *c.TrainNetwork,
		Estimate:     c.Stage != Pretrain,
		Probe:        c.Probe,
		Probes:       c.Probes,
		Beta1:        c.Beta1,
		Beta2:        c.Beta2,
	}
}

// Memory returns how the run's steps fit the device.
func (r *Run) Memory() Memory { return r.memory }

// ParamCount returns the number of trained scalars of the network; 0 of an analytic one.
func (r *Run) ParamCount() int {
	if r.net == nil {
		return 0
	}
	return r.net.ParamCount()
}

// Config returns the configuration with every default filled in.
func (r *Run) Config() Config { return r.cfg }

// Facts returns what has to be the same in all processes that take the run's steps.
func (r *Run) Facts() []processes.Fact {
	config, err := json.Marshal(r.cfg)
	if err != nil {
		panic(err) // it was stored as JSON
	}
	sum := sha256.Sum256(config)
	return []processes.Fact{
		{Name: "kind of device", Value: runtime.GOARCH + "/" + r.model.Device().Name()},
		{Name: "number of devices", Value: strconv.Itoa(r.trainer.Len())},
		{Name: "data set", Value: r.data.Hash()},
		{Name: "configuration", Value: hex.EncodeToString(sum[:])},
		{Name: "step", Value: strconv.FormatInt(r.step, 10)},
	}
}

// Damage returns an error once the run's images have been found not to be what was written: no step can follow.
func (r *Run) Damage() error {
	if r.data == nil {
		return nil
	}
	_, err := r.data.Checked()
	return err
}

// Schedule returns the schedule that would be saved: the average where there is one,
// else as it stands; nil in pretrain without one.
func (r *Run) Schedule() *schedule.Schedule { return r.published() }

// Progress is how far a run is.
type Progress struct {
	Step    int64   // steps taken
	Kimg    float64 // thousands of images seen
	Skipped int64   // steps that changed nothing because a gradient was not finite
}

// Progress returns how far the run is.
func (r *Run) Progress() Progress {
	return Progress{Step: r.step, Kimg: float64(r.seen) / 1000, Skipped: r.skipped}
}

// Rows returns the rows from the given one on. They are never written to again, and not to be written to.
func (r *Run) Rows(from int) []Row {
	n := len(r.rows)
	return r.rows[min(max(from, 0), n):n:n]
}

// Model returns the averaged network with the schedule as it stands, ready for
// checkpoint.SaveModel.
func (r *Run) Model(ctx context.Context) (*checkpoint.Model, error) {
	if r.net == nil {
		return nil, errNoModel
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	values, err := r.trainer.Average()
	if err != nil {
		return nil, err
	}
	return &checkpoint.Model{Net: r.net, Values: values, Schedule: r.published(), Basis: r.basis}, nil
}

// Close frees the device memory. Snapshots that others hold keep their weights.
func (r *Run) Close() {
	r.mu.Lock()
	if r.snapshot != nil {
		r.snapshot.Release()
		r.snapshot = nil
	}
	r.mu.Unlock()
	r.trainer.Close()
	r.model.Close()
}
