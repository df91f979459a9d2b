package train

import (
	"context"

	"github.com/anisoflight/anisoflight/internal/base/setting"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/data"
	"github.com/anisoflight/anisoflight/train/passes"
)

// streamAsked is the stream of package latent for the seeds of a remote step's noise.
const streamAsked uint32 = 0x61736b64

// Remote learns a schedule for a network that a passes.Asker evaluates. Its steps are those of a Run with a frozen
// network. It belongs to one goroutine.
type Remote struct {
	learner

	asker    passes.Asker
	samples  passes.Samples
	order    *data.Order
	basis    *basis.Basis // dense basis of the schedule; nil for a basis by formula
	mode     kernels.Mode
	position uint64
}

// RemoteFields are the fields of a Config that a Remote uses.
var RemoteFields = []string{
	"family", "schedule", "batch", "kimg", "seed", "T", "g0", "knots", "init", "c", "order", "schedule_lr",
	"schedule_beta1", "schedule_beta2", "schedule_lr_ramp", "schedule_lr_warmup", "schedule_lr_hold", "schedule_lr_final",
	"stratified", "estimator",
}

// NewRemote checks the configuration against its samples and starts at step 0. It uses the schedule and the bases of
// the sources. The stage is isotropic with basis none, else anisotropic. An error in a field is a *[setting.Error].
func NewRemote(cfg Config, samples passes.Samples, src Sources, asker passes.Asker) (*Remote, error) {
	cfg.TrainNetwork, cfg.Stage = new(false), Anisotropic
	if cfg.Family.Basis == "" || cfg.Family.Basis == "none" {
		cfg.Stage = Isotropic
	}
	cfg, err := cfg.Resolve()
	if err != nil {
		return nil, err
	}
	if err := samples.Check(); err != nil {
		return nil, err
	}
	b, err := familyBasis(cfg, src.Basis, samples.Height, samples.Width)
	if err != nil {
		return nil, err
	}
	mode := kernels.Mode(cfg.Estimator)
	if mode == kernels.Auto {
		mode = pick(b.J() == 1, kernels.Backprop, kernels.Full)
	}
	start, cfg, err := startSchedule(cfg, src, nil, b, len(samples.Counts), samples.Range)
	if err != nil {
		return nil, err
	}
	if err := checkClasses(cfg, samples, b); err != nil {
		return nil, err
	}
	return &Remote{
		learner: newLearner(cfg, start), asker: asker, samples: samples,
		order: data.NewOrder(cfg.Seed, samples.Images, false), basis: denseBasis(b), mode: mode,
	}, nil
}

// checkClasses checks that a basis per class has vectors for every class.
func checkClasses(cfg Config, samples passes.Samples, b *basis.Basis) error {
	if !b.PerClass() {
		return nil
	}
	if samples.Counts == nil {
		return setting.Errorf("counts", "must be given for a basis per class, got none")
	}
	for label, n := range samples.Counts {
		if n > 0 && !b.Knows(label) {
			return setting.Errorf("family", "must have a basis with vectors for every class, got %q with none for class %d",
				cfg.Family.Basis, label)
		}
	}
	return nil
}

// Mode returns the estimator's mode: never Auto.
func (r *Remote) Mode() kernels.Mode { return r.mode }

// J returns the number of subspaces.
func (r *Remote) J() int { return r.sched.J() }

// Steps returns the number of steps of the run: kimg in batches, rounded, and at least 1.
func (r *Remote) Steps() int64 {
	return max(1, int64(r.cfg.Kimg*1000/float64(r.cfg.Batch)+0.5))
}

// Basis returns the dense basis of the schedule; nil for a basis by formula.
func (r *Remote) Basis() *basis.Basis { return r.basis }

// Start measures the geodesic if the run starts from it. progress may be nil.
func (r *Remote) Start(ctx context.Context, progress func(done, total int)) error {
	if r.cfg.Init != initGeodesic {
		return nil
	}
	set := r.startSettings()
	set.Progress, set.Batch = progress, r.cfg.Batch
	g, err := passes.AskGeodesic(ctx, r.asker, r.samples, r.J(), set)
	if err != nil {
		return err
	}
	return r.startAt(g)
}

// Step asks for the terms of the next batch and takes a step with them. A *[DivergedError] comes with the row of a step
// that has been taken; after any other error the schedule is unchanged.
func (r *Remote) Step(ctx context.Context) (Row, error) {
	n := r.cfg.Batch
	images, labels := make([]int64, n), make([]int32, n)
	for i := range images {
		at, _ := r.order.At(r.position + uint64(i))
		images[i], labels[i] = int64(at), r.samples.Label(at)
	}
	b, err := r.drawAlongSchedule(n, labels)
	if err != nil {
		return Row{}, err
	}
	row, err := r.advance(b, func(row *Row) (kernels.StepOutput, error) {
		q := passes.Question{
			Mode: r.mode, J: r.J(), Step: row.Step, Images: images, Labels: labels, T: b.t, G: b.g, Omega: b.omega,
			Noise: make([]uint64, n),
		}
		key := latent.Uint64(r.cfg.Seed, streamAsked, uint64(row.Step))
		for i := range q.Noise {
			q.Noise[i] = latent.Uint64(key, streamAsked, uint64(i))
		}
		terms, err := r.asker.Ask(ctx, q)
		if err != nil {
			return kernels.StepOutput{}, err
		}
		loss := make([]float64, n)
		for i, v := range terms.Residual {
			loss[i/r.J()] += b.omega[i] * v
		}
		return kernels.StepOutput{Terms: terms, Loss: loss}, nil
	})
	if row.Step > 0 {
		r.position += uint64(n)
	}
	return row, err
}
