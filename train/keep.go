package train

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"

	"github.com/anisoflight/anisoflight/internal/base/setting"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/data"
	"github.com/anisoflight/anisoflight/train/passes"
)

// The values of Config.Keep.
const (
	KeepSamples = "samples"
	KeepLast    = "last"
)

const (
	// looksPerRun is the number of times that a run measures its state after the start.
	looksPerRun = 2
	// LookParts is the number of parts of a look's draws; each is left out once.
	LookParts = 8
	// The draws of a look are a hundredth of the run's images, so that looks take a small part of its time.
	drawsPerKimg, fewestDraws, mostDraws = 10, 64, 1024
	// energyDraws is the ratio of the draws of an energy to those of samples: each takes one evaluation.
	energyDraws = 4
)

// Look is a measurement of a state of a run, on images, noise and latents that training does not draw and that are the
// same in all looks of the run. Each list has a value without each of [LookParts] parts of the draws: the difference
// between two looks has a jackknife error.
type Look struct {
	Step    int64     `json:"step"`
	Kimg    float64   `json:"kimg"`
	Energy  []float64 `json:"energy"`
	Samples []float64 `json:"samples,omitempty"` // distances of samples to the images, with KeepSamples
	// OnStart reports that samples along the path of the start are better; Samples are theirs.
	OnStart bool `json:"on_start,omitempty"`
}

// divergedScore stands for a measure that is not finite, which JSON does not have.
const divergedScore = 1e300

// Diverged reports whether a measure of the state was not finite.
func (l Look) Diverged() bool { return l.score() >= divergedScore/(2*LookParts) }

// score returns the measure by which states are chosen; less is better.
func (l Look) score() float64 {
	if l.Samples != nil {
		return passes.Mean(l.Samples)
	}
	return passes.Mean(l.Energy)
}

// keeper is the part of a run that keeps its best state.
type keeper struct {
	looks        []Look
	best         int                // index of the look whose state is kept
	bestValues   [][]float32        // of that state; nil if the network is frozen
	bestSchedule *schedule.Schedule // of that state
}

// Candidate is a state of a run to be measured. The caller closes it.
type Candidate struct {
	Model    *kernels.Model
	Weights  *kernels.Weights // averaged
	Schedule *schedule.Schedule
	Start    *schedule.Schedule // when the run began; nil if Schedule is the same
	Data     *data.Dataset
	Draws    int // of samples
	Seed     uint64
	look     Look
	cfg      Config
}

// Close releases the weights.
func (c *Candidate) Close() { c.Weights.Release() }

// streamLook separates the draws of looks from those of training, and from users' samples.
const streamLook uint32 = 0x6c6f6f6b

// Candidate returns the current state if it is to be measured: at the start, after each half of the length, and at the
// end. Otherwise it returns nil. At the start it first measures a geodesic to start from.
func (r *Run) Candidate(ctx context.Context, end bool) (*Candidate, error) {
	part := func(kimg float64) float64 { return math.Floor(looksPerRun * kimg / r.cfg.Kimg) }
	n, kimg := len(r.looks), float64(r.seen)/1000
	switch {
	case r.cfg.Keep == KeepLast, r.net == nil,
		n > 0 && (r.looks[n-1].Step == r.step || !end && part(kimg) == part(r.looks[n-1].Kimg)):
		return nil, nil
	}
	if err := r.measureStart(ctx); err != nil {
		return nil, err
	}
	w, err := r.trainer.Publish(ctx)
	if err != nil {
		return nil, err
	}
	c := &Candidate{
		Model: r.model, Weights: w, Schedule: r.sched, Data: r.data,
		Draws: int(math.Min(math.Max(drawsPerKimg*r.cfg.Kimg, fewestDraws), mostDraws)),
		Seed:  latent.Uint64(r.cfg.Seed, streamLook, 0), look: Look{Step: r.step, Kimg: kimg}, cfg: r.cfg,
	}
	if r.sched != r.start {
		c.Start = r.start
	}
	return c, nil
}

// Energies measures the energy of a candidate without each part of the draws.
func (c *Candidate) Energies(ctx context.Context, progress func(done, total int)) ([]float64, error) {
	losses, err := passes.Losses(ctx, c.Model, c.Weights, c.Data, c.Schedule, passes.LossSettings{
		Samples: energyDraws * c.Draws, C: c.cfg.C, Order: c.cfg.Order, Seed: c.Seed, Progress: progress,
	})
	if errors.Is(err, passes.ErrNotFinite) {
		return slices.Repeat([]float64{math.Inf(1)}, LookParts), nil
	}
	if err != nil {
		return nil, err
	}
	out := make([]float64, LookParts)
	for part := range out {
		var rest []float64
		for i, loss := range losses {
			if i%LookParts != part {
				rest = append(rest, loss)
			}
		}
		out[part] = passes.Mean(rest)
	}
	return out, nil
}

// Keep records the measurement of a candidate: its energy, and distances of samples along its path and along that of
// the start. It keeps the state, with the better path, if it is the best so far. If the run has taken steps since, Keep
// does nothing.
func (r *Run) Keep(c *Candidate, energy, samples, onStart []float64) error {
	if c.look.Step != r.step || len(r.looks) > 0 && r.looks[len(r.looks)-1].Step == r.step {
		return nil
	}
	for _, measure := range [][]float64{energy, samples, onStart} {
		for i, v := range measure {
			if !setting.Finite(v) {
				measure[i] = divergedScore
			}
		}
	}
	c.look.Energy, c.look.Samples = energy, samples
	if onStart != nil && passes.Mean(onStart) < passes.Mean(samples) {
		c.look.Samples, c.look.OnStart = onStart, true
	}
	if len(r.looks) == 0 || c.look.score() < r.looks[r.best].score() {
		if *r.cfg.TrainNetwork {
			values, err := r.trainer.Average()
			if err != nil {
				return err
			}
			r.bestValues = values
		}
		r.bestSchedule, r.best = r.sched, len(r.looks)
		if c.look.OnStart {
			r.bestSchedule = r.start
		}
	}
	r.looks = append(r.looks[:len(r.looks):len(r.looks)], c.look)
	return nil
}

// keeperOf returns the keeper of a stored state, and the schedule that its run started from.
func keeperOf(s *checkpoint.Run) (k keeper, start *schedule.Schedule, err error) {
	if start, err = storedSchedule(s.ThetaStart, s.Schedule, s.ThetaM); err != nil || s.Looks == nil {
		return k, start, err
	}
	if err := json.Unmarshal(s.Looks, &k.looks); err != nil {
		return k, start, stateError("looks: %v", err)
	}
	if s.Best < 0 || s.Best >= len(k.looks) {
		return k, start, stateError("best must be one of %d looks, got %d", len(k.looks), s.Best)
	}
	k.best, k.bestValues, k.bestSchedule = s.Best, s.BestEMA, s.Schedule
	if s.ThetaM != nil {
		k.bestSchedule, err = storedSchedule(s.ThetaBest, s.Schedule, s.ThetaM)
	}
	return k, start, err
}

// StoredModel returns Run.Model and Run.Outcome of a stored state.
func StoredModel(s *checkpoint.Run) (*checkpoint.Model, *Outcome, error) {
	if s.Network == nil {
		return nil, nil, errNoModel
	}
	k, start, err := keeperOf(s)
	if err != nil {
		return nil, nil, err
	}
	m := &checkpoint.Model{Net: s.Network, Values: s.EMA, Schedule: s.Schedule, Basis: s.Basis}
	if m.Values == nil { // the network is frozen
		m.Values = s.Params
	}
	k.choose(m)
	return m, k.outcome(start), nil
}

// choose replaces the model's state by the best, if there is one.
func (k *keeper) choose(m *checkpoint.Model) {
	if len(k.looks) == 0 {
		return
	}
	m.Schedule = k.bestSchedule
	if k.bestValues != nil {
		m.Values = k.bestValues
	}
}

// Outcome summarises the looks of a run.
type Outcome struct {
	Start, Best, Last Look
	Looks             int
	Moved             *schedule.Movement // of the best state; nil if the schedule is not trained
}

// Outcome returns the summary of the run's looks; nil if there are none.
func (r *Run) Outcome() *Outcome { return r.keeper.outcome(r.start) }

func (k *keeper) outcome(start *schedule.Schedule) *Outcome {
	n := len(k.looks)
	if n == 0 {
		return nil
	}
	o := &Outcome{Start: k.looks[0], Best: k.looks[k.best], Last: k.looks[n-1], Looks: n}
	if start != nil {
		o.Moved = k.bestSchedule.MovedFrom(start)
	}
	return o
}
