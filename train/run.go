package train

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"math"
	"runtime"
	"strconv"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/processes"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/data"
)

// Run is a training stage under way. It belongs to one goroutine.
type Run struct {
	learner

	data    *data.Dataset // in the units that the network sees
	order   *data.Order
	net     kernels.Architecture // nil for an analytic network
	model   *kernels.Model
	trainer *kernels.Trainer
	memory  Memory

	scheduleBasis *basis.Basis // dense basis of the schedule; nil for a basis by formula
	familyBasis   *basis.Basis // dense basis of the configuration's family; nil for a basis by formula

	keeper

	initial  [][]float32 // values of the network, until the first step
	position uint64      // in order
}

// New checks the configuration against its sources and starts a run at step 0. An error in a field is a
// *[setting.Error].
func New(cfg Config, src Sources) (*Run, error) { return newRun(cfg, src, false) }

// Trainer returns what steps of a resolved configuration compute.
func (c Config) Trainer() kernels.TrainerConfig {
	return kernels.TrainerConfig{
		Mode:         kernels.Mode(c.Estimator),
		TrainNetwork: *c.TrainNetwork,
		Estimate:     c.Stage != Pretrain && *c.TrainSchedule,
		Probe:        c.Probe,
		Probes:       c.Probes,
		Beta1:        c.Beta1,
		Beta2:        c.Beta2,
	}
}

// Memory returns how the run's steps fit the device's memory.
func (r *Run) Memory() Memory { return r.memory }

// usualShare is the part of a device's peak that steps usually reach.
const usualShare = 0.4

// Seconds estimates how long the whole run takes, from the number of operations of its steps.
func (r *Run) Seconds(ctx context.Context) (float64, error) {
	cost, err := r.model.StepCost(r.cfg.Trainer(), r.cfg.Batch)
	if err != nil {
		return 0, err
	}
	peak, err := kernels.MatmulPeak(ctx, r.model.Device(), r.model.Precision())
	if err != nil {
		return 0, err
	}
	steps := math.Ceil(r.cfg.Kimg * 1000 / float64(r.cfg.Batch))
	return steps * float64(cost.FLOPs) / (usualShare * peak * float64(r.memory.Devices)), nil
}

// ParamCount returns the number of the network's parameters; 0 for an analytic network.
func (r *Run) ParamCount() int {
	if r.net == nil {
		return 0
	}
	return r.net.ParamCount()
}

// Facts returns what must be the same in all processes that step the run.
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

// Damage returns an error if the run's images are not what was written: no further step is possible.
func (r *Run) Damage() error {
	_, err := r.data.Checked()
	return err
}

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

// Model returns the averaged network with its schedule: those of the best state if the run keeps it, else the current
// ones.
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
	m := &checkpoint.Model{Net: r.net, Values: values, Schedule: r.sched, Basis: r.scheduleBasis}
	r.choose(m)
	return m, nil
}

// Close frees the device memory.
func (r *Run) Close() {
	r.trainer.Close()
	r.model.Close()
}
