package train

import (
	"time"

	"github.com/anisoflight/anisoflight/internal/base/setting"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train/passes"
)

// learner is the part of a stage that the host computes: it draws noise levels along the schedule, and moves the
// schedule by the terms of the gradient.
type learner struct {
	cfg   Config
	sched *schedule.Schedule // as it stands; nil in pretrain without one
	start *schedule.Schedule // when the run began; nil if the schedule is not trained
	theta [][]schedule.Theta // parameters of sched; nil if it is not trained
	adam  *scheduleAdam      // nil if the schedule is not trained

	previous [][][]float64 // d_θH of the previous step; nil in the first
	guard    guard

	step, seen, skipped int64
	measured            bool // the run starts from a geodesic, and it has been measured
	rows                []Row
	peak                func() (flops float64, ok bool) // of the device; nil without one
}

func newLearner(cfg Config, s *schedule.Schedule) learner {
	l := learner{cfg: cfg, guard: newGuard(cfg.Batch)}
	l.startFrom(s)
	return l
}

// Config returns the configuration with every default filled in.
func (l *learner) Config() Config { return l.cfg }

// Schedule returns the current schedule; nil in pretrain without one.
func (l *learner) Schedule() *schedule.Schedule { return l.sched }

// Rows returns the rows from index from on. They are never overwritten, and must not be changed.
func (l *learner) Rows(from int) []Row {
	n := len(l.rows)
	return l.rows[min(max(from, 0), n):n:n]
}

// advance takes one step on a batch. terms computes the terms of the gradient, and sets the row's other columns.
//
// After an error before the step nothing has changed. A *[DivergedError] comes with the row of a step that has been
// taken.
func (l *learner) advance(b batch, terms func(row *Row) (kernels.StepOutput, error)) (Row, error) {
	began, n := time.Now(), b.n
	begin, end := float64(l.seen)/1000, float64(l.seen+int64(n))/1000
	row := emptyRow()
	row.Step, row.Kimg = l.step+1, end
	out, err := terms(&row)
	if err != nil {
		return Row{}, err
	}
	skipped := out.Skipped
	row.Loss = passes.Mean(out.Loss)
	if l.cfg.Stage != Pretrain {
		row.Energy = l.sched.T() * l.sched.T() * row.Loss
	}
	if l.theta != nil {
		row.ScheduleLR = l.cfg.scheduleRamp().At(begin, end)
		moved, err := l.learn(b, out.Terms, &row, !skipped)
		if err != nil {
			return Row{}, err
		}
		skipped = skipped || !moved
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
	return row, l.guard.check(row, skipped)
}

// learn sets the row's columns of the schedule's gradient. If move is true and the gradient is finite, it takes one
// step of Adam on θ.
func (l *learner) learn(b batch, terms *kernels.Terms, row *Row, move bool) (moved bool, err error) {
	d := gradient(l.sched, l.theta, b, terms.Parts(b.omega, b.g, b.gdot, l.cfg.C, l.cfg.Order))
	row.ScheduleGradNorm, row.ScheduleGradStderr = d.norm, d.stderr
	row.ScheduleGradCosine, row.Share = cosine(d.mean, l.previous), d.byTerm(d.share)
	row.TermStderr = d.byTerm(func(term *estimate) float64 { return term.stderr })
	if !move || !setting.Finite(d.norm) {
		return false, nil
	}
	theta := l.sched.Theta() // a copy: l.theta stays with the schedule that it belongs to
	l.adam.step(theta, d.mean, d.active, row.ScheduleLR)
	next, err := schedule.FromTheta(l.sched.Family(), l.sched.Labels(), theta, l.sched.T(), l.cfg.G0)
	if err != nil {
		return false, &DivergedError{Step: row.Step, Msg: "the schedule is not finite: " + err.Error()}
	}
	l.sched, l.theta, l.previous = next, theta, d.mean
	return true, nil
}

// startFrom replaces the schedule, and resets its optimiser and gradient.
func (l *learner) startFrom(s *schedule.Schedule) {
	l.sched = s
	if l.cfg.Stage == Pretrain || !*l.cfg.TrainSchedule {
		return
	}
	l.start, l.theta = s, s.Theta()
	l.adam = newScheduleAdam(l.cfg.ScheduleBeta1, l.cfg.ScheduleBeta2, l.theta)
	l.previous = nil
}

// Moved returns how far the run has moved its schedule; nil if the schedule is not trained.
func (l *learner) Moved() *schedule.Movement {
	if l.start == nil {
		return nil
	}
	return l.sched.MovedFrom(l.start)
}

// startSettings returns the settings of the geodesic that a stage starts from: one path, because a path per class takes
// a pass for each class.
func (l *learner) startSettings() passes.GeodesicSettings {
	return passes.GeodesicSettings{
		T: l.cfg.T, G0: l.cfg.G0, C: l.cfg.C, Knots: l.cfg.Knots, Order: l.cfg.Order, Seed: l.cfg.Seed,
	}
}

// startAt replaces the schedule by a geodesic, the same in every class and subspace.
func (l *learner) startAt(g *passes.Geodesic) error {
	s, err := g.Schedule.Expand(l.sched.Family(), l.sched.Labels(), l.sched.J())
	if err != nil {
		return setting.Errorf("init", "cannot be geodesic: %v", err)
	}
	l.measured = true
	l.startFrom(s)
	return nil
}
