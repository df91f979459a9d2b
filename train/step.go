package train

import (
	"context"
	"math"
	"time"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train/data"
)

// Step takes the next batch of the data set through one step.
//
// An error before the step leaves the run as it was. A *[DivergedError] comes with the
// row of a step that has been taken.
func (r *Run) Step(ctx context.Context) (Row, error) {
	n := r.cfg.Batch
	images, labels := make([]float32, n*r.data.Pixels()), make([]int32, n)
	r.order.Batch(r.data, r.position, images, labels)
	row, err := r.StepOn(ctx, images, labels)
	if row.Step > 0 {
		r.position += uint64(n)
	}
	return row, err
}

// StepOn takes a caller's batch through one step. The data set's order stays where it
// is.
//
//	images  [B, H, W, C] in [−1, 1]
//	labels  [B], −1 for none; nil for all −1
//
// An image that the data set could not hold is a *data.Error. Every new batch size costs
// one compilation.
func (r *Run) StepOn(ctx context.Context, images []float32, labels []int32) (Row, error) {
	began := time.Now()
	n := len(images) / r.model.Pixels()
	if n == 0 || len(images) != n*r.model.Pixels() || labels != nil && len(labels) != n {
		return Row{}, &data.Error{Row: -1, Msg: "the batch is no whole number of images with a label each"}
	}
	for i := range n {
		if err := r.data.CheckRow(i, images[i*r.model.Pixels():(i+1)*r.model.Pixels()]); err != nil {
			return Row{}, err
		}
	}
	if err := r.measureStart(ctx); err != nil {
		return Row{}, err
	}
	b, err := r.draw(n, labels)
	if err != nil {
		return Row{}, err
	}
	from, to := float64(r.seen)/1000, float64(r.seen+int64(n))/1000
	row := emptyRow()
	row.Step, row.Kimg = r.step+1, to
	in := kernels.StepInput{Images: images, Labels: labels, G: b.g, Omega: b.omega, Seed: r.cfg.Seed, Step: row.Step}
	if *r.cfg.TrainNetwork {
		row.LR = r.cfg.networkRamp().At(from, to)
		in.LR, in.EMABeta = row.LR, math.Pow(0.5, (to-from)/r.cfg.EMAHalflife)
	}
	out, err := r.trainer.Step(ctx, in)
	if err != nil {
		return Row{}, err
	}
	skipped := out.Skipped
	if *r.cfg.TrainNetwork {
		row.GradNorm = out.GradNorm
	}
	row.Loss = mean(out.Loss)
	if r.theta != nil {
		row.ScheduleLR = r.cfg.scheduleRamp().At(from, to)
		row.Energy = r.sched.T() * r.sched.T() * row.Loss
		var moved bool
		if moved, err = r.learn(b, out.Terms, &row, !skipped); err != nil {
			return Row{}, err
		}
		skipped = skipped || !moved
	}
	if skipped {
		r.skipped++
	}
	r.step++
	r.seen += int64(n)
	row.Seconds = time.Since(began).Seconds()
	r.rows = append(r.rows, row)
	return row, r.guard.watch(row, skipped)
}

// batch is what a step adds to the images.
type batch struct {
	rows           []int     // of the schedule, per sample; nil in pretrain
	t              []float64 // [B]
	g, gdot, omega []float64 // [B*J]
}

// draw chooses the noise levels of a step for samples of these classes.
func (r *Run) draw(n int, labels []int32) (batch, error) {
	step, j := r.step+1, r.model.J()
	if r.theta == nil {
		b := batch{g: variances(r.cfg.Seed, step, n, j, *r.cfg.PMean, r.cfg.PStd, r.cfg.PStdSubspace)}
		b.omega = make([]float64, len(b.g))
		for i, g := range b.g {
			b.omega[i] = r.model.EDMWeight(g)
		}
		return b, nil
	}
	b := batch{rows: make([]int, n), t: times(r.cfg.Seed, step, n, r.sched.T(), *r.cfg.Stratified)}
	b.g, b.gdot, b.omega = make([]float64, n*j), make([]float64, n*j), make([]float64, n*j)
	for i, t := range b.t {
		label := -1
		if labels != nil {
			label = int(labels[i])
		}
		var err error
		if b.rows[i], err = r.sched.Row(label); err != nil {
			return b, err
		}
		own := func(x []float64) []float64 { return x[i*j : (i+1)*j] }
		r.sched.Eval(b.rows[i], t, own(b.g), own(b.gdot))
		for k := range own(b.omega) {
			own(b.omega)[k] = schedule.Omega(own(b.g)[k], own(b.gdot)[k], r.cfg.C)
		}
	}
	return b, nil
}

// learn fills in what a step knows of the schedule's gradient and, if move is set and
// the gradient is finite, takes one step of Adam on θ.
func (r *Run) learn(b batch, terms *kernels.Terms, row *Row, move bool) (moved bool, err error) {
	d := gradient(r.sched, r.theta, b, terms.Parts(b.omega, b.g, b.gdot, r.cfg.C))
	row.ScheduleGradNorm, row.ScheduleGradStderr = d.norm, d.stderr
	row.ScheduleGradCosine, row.Share, row.TermStderr = cosine(d.mean, r.previous), d.shares(), d.stderrs()
	if !move || !finite(d.norm) {
		return false, nil
	}
	theta := r.sched.Theta() // a copy: r.theta stays with the schedule that it belongs to
	r.previous = d.mean
	r.adam.step(theta, d.mean, d.active, row.ScheduleLR)
	next, err := schedule.FromTheta(r.sched.Family(), r.sched.Labels(), theta, r.sched.T(), r.cfg.G0)
	if err != nil {
		return false, &DivergedError{Step: row.Step, Msg: "the schedule has left the numbers: " + err.Error()}
	}
	r.sched, r.theta = next, theta
	return true, nil
}

func mean(x []float64) float64 {
	var sum float64
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}
