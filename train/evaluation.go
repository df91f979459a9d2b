package train

import (
	"context"

	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/schedule"
)

// riseBound is how many standard errors above the lowest energy count as a rise.
const riseBound = 3

// evaluate measures the energy T² Σ_j ω_j |P_j r|² of a schedule under the network as it
// would be saved, sample by sample: always the same images, places in [0, 1], stratified,
// and noise, so that the energies of two schedules are paired.
func (r *Run) evaluate(ctx context.Context, s *schedule.Schedule) ([]float64, error) {
	w, err := r.trainer.Publish(ctx)
	if err != nil {
		return nil, err
	}
	defer w.Release()
	n, j := r.cfg.EvalSamples, r.model.J()
	m := newMeter(r.model, w, r.data, nil, r.cfg.Seed, min(n, 128))
	g, gdot, scale := make([]float64, n*j), make([]float64, n*j), make([]float64, n)
	for i := range n {
		label := r.data.Label(m.image(uint64(i)))
		row, err := s.Row(int(label))
		if err != nil {
			return nil, err
		}
		u := float64(latent.Uint64(m.seed, streamTime, uint64(i))>>11) * 0x1p-53
		s.Eval(row, s.T()*(float64(i)+u)/float64(n), g[i*j:(i+1)*j], gdot[i*j:(i+1)*j])
		scale[i] = s.T() * s.T() * r.weights.of(label)
	}
	residual, err := m.residuals(ctx, 0, g)
	if err != nil {
		return nil, err
	}
	energy := make([]float64, n)
	for i, v := range residual {
		energy[i/j] += scale[i/j] * schedule.Omega(g[i], gdot[i], r.cfg.C) * v
	}
	return energy, nil
}

// watchEnergy evaluates the schedule if it is due, before the step that row tells of.
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
	row.EvalEnergy = mean(energy)
	best := r.watch.Best
	if best != nil {
		d := make([]float64, len(energy))
		for i := range d {
			d[i] = energy[i] - best.energy[i]
		}
		row.EvalRise, row.EvalRiseStderr = stratifiedMean(d)
	}
	if best == nil || row.EvalEnergy < best.Energy {
		r.watch.Best = &bestSchedule{Best{r.step, kimg, row.EvalEnergy}, energy, increments(s)}
	}
	return nil
}
