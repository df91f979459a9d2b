package train

import (
	"context"
	"math"
	"time"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train/passes"
	"github.com/anisoflight/anisoflight/train/setting"
)

// learner is the part of a stage that the host computes: it draws noise levels along the schedule, and moves the
// schedule by the terms that come back, whoever computes them. A Run has one, and so has a Remote.
type learner struct {
	cfg   Config
	sched *schedule.Schedule // as it stands; nil in pretrain without one
	theta [][]schedule.Theta // parameters of sched; nil in pretrain
	adam  *scheduleAdam      // nil in pretrain

	previous [][][]float64 // d_θH of the step before; nil before there is one
	average  [][][]float64 // of the increments of ln g; nil where the schedule has none
	weights  classWeights  // nil where classes count as they come
	early    earlyStop
	guard    guard

	step, seen, skipped int64
	measured            bool // the start of the schedule, where it is measured
	rows                []Row
	peak                func() (flops float64, ok bool) // of the device; nil without one
}

// source computes the terms of a batch: the device, or a client that keeps its network. What it knows of the step
// beyond them it writes into the row.
type source interface {
	terms(ctx context.Context, b batch, row *Row) (kernels.StepOutput, error)
}

func newLearner(cfg Config, s *schedule.Schedule, weights classWeights) learner {
	l := learner{cfg: cfg, sched: s, weights: weights, guard: newGuard(cfg.Batch)}
	if cfg.Stage == Pretrain {
		return l
	}
	l.theta = s.Theta()
	l.adam = newScheduleAdam(cfg.ScheduleBeta1, cfg.ScheduleBeta2, l.theta)
	if cfg.ScheduleEMAHalflife > 0 {
		l.average = increments(s)
	}
	return l
}

// advance takes one step on a batch.
//
// An error before the step leaves everything as it was. A *[DivergedError] or *[StoppedError] comes with the row of a
// step that has been taken.
func (l *learner) advance(ctx context.Context, b batch, terms source) (Row, error) {
	began, n := time.Now(), b.n
	begin, end := float64(l.seen)/1000, float64(l.seen+int64(n))/1000
	row := emptyRow()
	row.Step, row.Kimg = l.step+1, end
	out, err := terms.terms(ctx, b, &row)
	if err != nil {
		return Row{}, err
	}
	skipped, stop := out.Skipped, l.early.risen(row)
	row.Loss = passes.Mean(out.Loss)
	if l.theta != nil {
		row.ScheduleLR = l.cfg.scheduleRamp().At(begin, end)
		row.Energy = l.sched.T() * l.sched.T() * row.Loss
		moved, noise, err := l.learn(b, out.Terms, &row, !skipped)
		if err != nil {
			return Row{}, err
		}
		skipped = skipped || !moved
		if stop == nil {
			stop = noise
		}
	}
	if skipped {
		l.skipped++
	}
	l.step++
	l.seen += int64(n)
	row.Seconds = time.Since(began).Seconds()
	if l.peak != nil {
		row.GFLOPS = float64(out.FLOPs) / row.Seconds / 1e9
		if peak, ok := l.peak(); ok {
			row.MFU = row.GFLOPS * 1e9 / peak
		}
	}
	l.rows = append(l.rows, row)
	return row, l.verdict(row, skipped, stop)
}

// verdict returns an error where a step was the last for now. Where the energy has risen or the run looks lost, the
// best schedule that the evaluation set knows is the one that stays.
func (l *learner) verdict(row Row, skipped bool, stop error) error {
	lost := l.guard.check(row, skipped)
	if lost != nil {
		stop = lost
	}
	if stop == nil || lost == nil && l.early.risen(row) == nil {
		return stop
	}
	if err := l.keepBest(); err != nil {
		return err
	}
	return stop
}

// learn fills in what a step knows of the schedule's gradient and, if move is set and the gradient is finite, takes one
// step of Adam on θ. stop is an error where it is only noise.
func (l *learner) learn(b batch, terms *kernels.Terms, row *Row, move bool) (moved bool, stop, err error) {
	d := gradient(l.sched, l.theta, b, terms.Parts(b.omega, b.g, b.gdot, l.cfg.C))
	row.ScheduleGradNorm, row.ScheduleGradStderr = d.norm, d.stderr
	row.ScheduleGradCosine, row.Share = cosine(d.mean, l.previous), d.byTerm(d.share)
	row.TermStderr = d.byTerm(func(term *estimate) float64 { return term.stderr })
	if !move || !setting.Finite(d.norm) {
		return false, nil, nil
	}
	stop = l.early.noise(l.cfg, d, *row, float64(l.seen)/1000)
	theta := l.sched.Theta() // a copy: l.theta stays with the schedule that it belongs to
	l.adam.step(theta, clipped(d.mean, d.norm, l.cfg.ScheduleClip), d.active, row.ScheduleLR)
	next, err := schedule.FromTheta(l.sched.Family(), l.sched.Labels(), theta, l.sched.T(), l.cfg.G0)
	if err != nil {
		return false, nil, &DivergedError{Step: row.Step, Msg: "the schedule has left the numbers: " + err.Error()}
	}
	l.sched, l.theta, l.previous = next, theta, d.mean
	if l.average != nil {
		images := float64(len(b.t)) / 1000
		moveAverage(l.average, next, math.Pow(0.5, images/l.cfg.ScheduleEMAHalflife))
	}
	return true, stop, nil
}

// clipped returns d scaled down to the norm limit; 0 is none.
func clipped(d [][][]float64, norm, limit float64) [][][]float64 {
	if limit == 0 || norm <= limit {
		return d
	}
	out := cloneTable(d)
	for _, row := range out {
		for _, sub := range row {
			for k := range sub {
				sub[k] *= limit / norm
			}
		}
	}
	return out
}

// keepBest replaces the schedule by that of lowest energy, and resets its optimiser.
func (l *learner) keepBest() error {
	best := l.early.Best
	if best == nil {
		return nil
	}
	s, err := scheduleOf(l.sched, best.increments)
	if err != nil {
		return err
	}
	l.startFrom(s)
	return nil
}

// startFrom replaces the schedule, and resets all that follows it: its optimiser, its average, and what is known of its
// gradient.
func (l *learner) startFrom(s *schedule.Schedule) {
	l.sched, l.theta = s, s.Theta()
	l.adam = newScheduleAdam(l.cfg.ScheduleBeta1, l.cfg.ScheduleBeta2, l.theta)
	l.previous, l.early.sum = nil, nil
	if l.average != nil {
		l.average = increments(s)
	}
}

// published is the schedule that samplers see and that is saved: the average where there is one.
func (l *learner) published() *schedule.Schedule {
	if l.average == nil {
		return l.sched
	}
	if s, err := scheduleOf(l.sched, l.average); err == nil {
		return s
	}
	return l.sched // an average whose increments have rounded away
}

// startSettings are those of the geodesic that a stage starts from.
func (l *learner) startSettings() passes.GeodesicSettings {
	return passes.GeodesicSettings{
		T: l.cfg.T, G0: l.cfg.G0, C: l.cfg.C, Knots: l.cfg.Knots, Seed: l.cfg.Seed,
		Family: schedule.Family{PerClass: l.cfg.Family.PerClass},
	}
}

// startAt puts a geodesic in the place of the schedule: the same in every subspace.
func (l *learner) startAt(g *passes.Geodesic) error {
	s, err := g.Schedule.Expand(l.sched.Family(), l.sched.Labels(), l.sched.J())
	if err != nil {
		return setting.Errorf("init", "cannot be geodesic: %v", err)
	}
	l.measured = true
	l.startFrom(s)
	return nil
}
