package train

import (
	"context"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
)

// Snapshot is what samplers see of a run: immutable. Whoever got it from Run.Snapshot
// releases it.
type Snapshot struct {
	Model    *kernels.Model     // the network on the device with the family's basis; lives as long as the run
	Weights  *kernels.Weights   // moving average, or the network itself where it is frozen
	Schedule *schedule.Schedule // nil in pretrain without one
	Step     int64
}

// Release ends the caller's hold.
func (s *Snapshot) Release() { s.Weights.Release() }

// Publish makes the present average and schedule the run's snapshot. Samplers that
// hold an earlier one keep it.
func (r *Run) Publish(ctx context.Context) error {
	next := &Snapshot{Model: r.model, Schedule: r.published(), Step: r.step}
	var err error
	if next.Weights, err = r.averaged(ctx); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.snapshot != nil {
		r.snapshot.Release()
	}
	r.snapshot = next
	return nil
}

// averaged returns a copy of the average; of a frozen network one copy serves for good.
func (r *Run) averaged(ctx context.Context) (*kernels.Weights, error) {
	if !*r.cfg.TrainNetwork {
		if s := r.Snapshot(); s != nil {
			return s.Weights, nil
		}
	}
	return r.trainer.Publish(ctx)
}

// Snapshot returns what was published last, held for the caller until Release; nil
// before the first Publish. It may be called from any goroutine.
func (r *Run) Snapshot() *Snapshot {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.snapshot == nil {
		return nil
	}
	held := *r.snapshot
	held.Weights = held.Weights.Retain()
	return &held
}
