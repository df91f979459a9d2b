package train

import (
	"context"
	"slices"

	"github.com/anisoflight/anisoflight/internal/base/setting"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/data"
	"github.com/anisoflight/anisoflight/train/passes"
)

// streamAsked is the stream of package latent that seeds the noise of a remote step.
const streamAsked uint32 = 0x61736b64

// Remote learns a schedule for a network that an Asker evaluates: the steps of a Run with a frozen network, whose terms
// come from elsewhere. It belongs to one goroutine.
type Remote struct {
	learner

	asker    passes.Asker
	samples  passes.Samples
	order    *data.Order
	basis    *basis.Basis // dense one that travels with the schedule; nil where its name says it all
	j        int
	mode     kernels.Mode
	position uint64
}

// RemoteFields are the fields of a Config that a Remote has a use for: what the host computes.
var RemoteFields = []string{
	"family", "schedule", "batch", "kimg", "seed", "T", "g0", "knots", "init", "c", "order", "schedule_lr",
	"schedule_beta1", "schedule_beta2", "schedule_lr_ramp", "schedule_lr_warmup", "schedule_lr_hold", "schedule_lr_final",
	"stratified", "estimator",
}

// NewRemote checks the configuration against its samples and starts at step 0. Of the sources it reads the schedule to
// start from, and bases. The stage follows from the family: isotropic with basis none, else anisotropic. An error in a
// field is a *[setting.Error].
func NewRemote(cfg Config, samples passes.Samples, src Sources, by passes.Asker) (*Remote, error) {
	frozen := false
	cfg.TrainNetwork, cfg.Stage = &frozen, Anisotropic
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
		learner: newLearner(cfg, start), asker: by, samples: samples,
		order: data.NewOrder(cfg.Seed, samples.Images, false), basis: dense(b), j: b.J(), mode: mode,
	}, nil
}

// checkClasses checks that the classes serve the family's basis.
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
func (r *Remote) J() int { return r.j }

// Config returns the configuration with every default filled in.
func (r *Remote) Config() Config { return r.cfg }

// Steps returns the length of the run: as many whole batches as come closest to its kimg.
func (r *Remote) Steps() int64 {
	return max(1, int64(r.cfg.Kimg*1000/float64(r.cfg.Batch)+0.5))
}

// Schedule returns the schedule as it would be stored, and the dense basis that travels with it, if there is one.
func (r *Remote) Schedule() (*schedule.Schedule, *basis.Basis) { return r.sched, r.basis }

// Rows returns a copy of the rows so far.
func (r *Remote) Rows() []Row { return slices.Clone(r.rows) }

// Start measures what the schedule starts from, where that is measured. progress may be nil.
func (r *Remote) Start(ctx context.Context, progress func(done, total int)) error {
	if r.cfg.Init != initGeodesic {
		return nil
	}
	set := r.startSettings()
	set.Progress, set.Batch = progress, r.cfg.Batch
	g, err := passes.AskGeodesic(ctx, r.asker, r.samples, r.j, set)
	if err != nil {
		return err
	}
	return r.startAt(g)
}

// Step asks for the terms of the next batch and takes a step with them. A *[DivergedError] comes with the row
// of a step that has been taken; any other error leaves the schedule as it was.
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
			Mode: r.mode, J: r.j, Step: row.Step, Images: images, Labels: labels, T: b.t, G: b.g, Omega: b.omega,
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
			loss[i/r.j] += b.omega[i] * v
		}
		return kernels.StepOutput{Terms: terms, Loss: loss}, nil
	})
	if row.Step > 0 {
		r.position += uint64(n)
	}
	return row, err
}
