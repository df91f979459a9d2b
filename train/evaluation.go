package train

import (
	"context"

	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train/passes"
	"github.com/anisoflight/anisoflight/train/stats"
)

// evaluate returns the energy of a schedule on the fixed evaluation set, under the network
// as it would be saved, sample by sample.
func (r *Run) evaluate(ctx context.Context, s *schedule.Schedule) ([]float64, error) {
	w, err := r.trainer.Publish(ctx)
	if err != nil {
		return nil, err
	}
	defer w.Release()
	return passes.Energies(ctx, r.model, w, r.data, s, passes.EnergySettings{
		Samples: r.cfg.EvalSamples, C: r.cfg.C, Seed: r.cfg.Seed, Weight: r.weights.of,
	})
}

// watchEnergy evaluates the schedule if it is due, before the step of row.
func (r *Run) watchEnergy(ctx context.Context, row *Row) error {
	if !r.cfg.stopsBy(StopEnergy) {
		return nil
	}
	kimg := float64(r.seen) / 1000
	if r.watch.Best != nil && kimg < r.watch.NextEval {
		return nil
	}
	s := r.published()
	energy, err := r.evaluate(ctx, s)
	if err != nil {
		return err
	}
	r.watch.NextEval = kimg + r.cfg.EvalEvery
	row.EvalEnergy = stats.Mean(energy)
	best := r.watch.Best
	if best != nil {
		d := make([]float64, len(energy))
		for i := range d {
			d[i] = energy[i] - best.energy[i]
		}
		row.EvalRise, row.EvalRiseStderr = stats.StratifiedMean(d)
	}
	if best == nil || row.EvalEnergy < best.Energy {
		r.watch.Best = &bestSchedule{Best{r.step, kimg, row.EvalEnergy}, energy, increments(s)}
	}
	return nil
}

// Best returns where the energy was lowest; nil before anything was evaluated.
func (r *Run) Best() *Best {
	if r.watch.Best == nil {
		return nil
	}
	best := r.watch.Best.Best
	return &best
}
