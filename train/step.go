package train

import (
	"context"
	"math"
	"time"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train/data"
	"github.com/anisoflight/anisoflight/train/setting"
	"github.com/anisoflight/anisoflight/train/stats"
)

// Step takes the next batch of the data set through one step.
//
// An error before the step leaves the run as it was. A *[DivergedError] comes with the
// row of a step that has been taken.
func (r *Run) Step(ctx context.Context) (Row, error) {
	n := r.cfg.Batch
	images, labels := make([]float32, n*r.data.Pixels()), make([]int32, n)
	if err := r.order.Batch(r.data, r.position, images, labels); err != nil {
		return Row{}, err
	}
	row, err := r.advance(ctx, images, labels)
	if row.Step > 0 {
		r.position += uint64(n)
	}
	return row, err
}

// StepOn takes a caller's batch through one step. The data set's order stays where it
// is.
//
//	images  [B, H, W, C] in [−1, 1], or in the data set's own units where it has a normalization; they are overwritten
//	labels  [B], −1 for none; nil for all −1
//
// An image that the data set could not hold is a *data.Error. Every new batch size costs
// one compilation.
func (r *Run) StepOn(ctx context.Context, images []float32, labels []int32) (Row, error) {
	n := len(images) / r.model.Pixels()
	if n == 0 || len(images) != n*r.model.Pixels() || labels != nil && len(labels) != n {
		return Row{}, &data.Error{Row: -1, Msg: "a batch must be a whole number of images with a label each"}
	}
	for i := range n {
		if err := r.data.CheckHWC(i, images[i*r.model.Pixels():(i+1)*r.model.Pixels()]); err != nil {
			return Row{}, err
		}
	}
	r.data.Normalization().Forward(images)
	return r.advance(ctx, images, labels)
}

// advance is StepOn for images that are known to be good.
func (r *Run) advance(ctx context.Context, images []float32, labels []int32) (Row, error) {
	began, n := time.Now(), len(images)/r.model.Pixels()
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
	if err := r.watchEnergy(ctx, &row); err != nil {
		return Row{}, err
	}
	in := kernels.StepInput{
		Images: images, Labels: labels, G: b.g, Omega: b.omega, Seed: r.cfg.Seed, Step: row.Step,
		Clip: r.cfg.Clip, Part: r.cfg.Microbatch, NetworkG: b.network,
	}
	if *r.cfg.TrainNetwork {
		row.LR = r.cfg.networkRamp().At(from, to)
		in.LR, in.EMABeta = row.LR, math.Pow(0.5, (to-from)/r.cfg.halflife(from))
	}
	r.initial = nil
	out, err := r.trainer.Step(ctx, in)
	if err != nil {
		return Row{}, err
	}
	skipped, stop := out.Skipped, r.risen(row)
	if *r.cfg.TrainNetwork {
		row.GradNorm = out.GradNorm
	}
	row.Loss = stats.Mean(out.Loss)
	if r.theta != nil {
		row.ScheduleLR = r.cfg.scheduleRamp().At(from, to)
		row.Energy = r.sched.T() * r.sched.T() * row.Loss
		moved, noise, err := r.learn(b, out.Terms, &row, !skipped)
		if err != nil {
			return Row{}, err
		}
		skipped = skipped || !moved
		if stop == nil {
			stop = noise
		}
	}
	if skipped {
		r.skipped++
	}
	r.step++
	r.seen += int64(n)
	row.Seconds = time.Since(began).Seconds()
	row.GFLOPS = float64(out.FLOPs) / row.Seconds / 1e9
	if peak, ok := r.model.Device().Peak(); ok {
		row.MFU = row.GFLOPS * 1e9 / peak
	}
	r.rows = append(r.rows, row)
	return row, r.verdict(row, skipped, stop)
}

// verdict returns an error where a step was the last for now. Where the energy has risen or the run
// looks lost, the best schedule that the evaluation set knows is the one that stays.
func (r *Run) verdict(row Row, skipped bool, stop error) error {
	lost := r.guard.watch(row, skipped)
	if lost != nil {
		stop = lost
	}
	if stop == nil || lost == nil && r.risen(row) == nil {
		return stop
	}
	if err := r.keepBest(); err != nil {
		return err
	}
	return stop
}

// batch is what a step adds to the images.
type batch struct {
	rows           []int     // of the schedule, per sample; nil in pretrain
	t              []float64 // [B]
	g, gdot, omega []float64 // [B*J]; omega with the weights of the classes
	network        []float64 // [B*J] variances at which the network is trained; nil for g
}

// draw chooses the noise levels of a step for samples of these classes.
func (r *Run) draw(n int, labels []int32) (batch, error) {
	step, j := r.step+1, r.model.J()
	if r.theta == nil {
		b := batch{g: variances(r.cfg.Seed, step, n, j, *r.cfg.PMean, r.cfg.PStd, r.cfg.PStdSubspace)}
		for i, g := range b.g {
			b.g[i] = r.model.Range().Clamp(g)
		}
		b.omega = make([]float64, len(b.g))
		for i, g := range b.g {
			b.omega[i] = r.model.EDMWeight(g) * r.weightOf(labels, i/j)
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
			own(b.omega)[k] = schedule.Omega(own(b.g)[k], own(b.gdot)[k], r.cfg.C) * r.weightOf(labels, i)
		}
	}
	if r.cfg.PStdSubspace > 0 {
		b.network = variances(r.cfg.Seed, step, n, j, 0, 0, r.cfg.PStdSubspace)
		for i, g := range b.g {
			b.network[i] = r.model.Range().Clamp(b.network[i] * g)
		}
	}
	return b, nil
}

// weightOf returns the weight of a sample's class.
func (r *Run) weightOf(labels []int32, i int) float64 {
	if labels == nil {
		return r.weights.of(-1)
	}
	return r.weights.of(labels[i])
}

// learn fills in what a step knows of the schedule's gradient and, if move is set and
// the gradient is finite, takes one step of Adam on θ. stop is an error where it is only noise.
func (r *Run) learn(b batch, terms *kernels.Terms, row *Row, move bool) (moved bool, stop, err error) {
	d := gradient(r.sched, r.theta, b, terms.Parts(b.omega, b.g, b.gdot, r.cfg.C))
	row.ScheduleGradNorm, row.ScheduleGradStderr = d.norm, d.stderr
	row.ScheduleGradCosine, row.Share, row.TermStderr = cosine(d.mean, r.previous), d.shares(), d.stderrs()
	if !move || !setting.Finite(d.norm) {
		return false, nil, nil
	}
	stop = r.watchNoise(d, *row)
	theta := r.sched.Theta() // a copy: r.theta stays with the schedule that it belongs to
	r.adam.step(theta, clipped(d.mean, d.norm, r.cfg.ScheduleClip), d.active, row.ScheduleLR)
	next, err := schedule.FromTheta(r.sched.Family(), r.sched.Labels(), theta, r.sched.T(), r.cfg.G0)
	if err != nil {
		return false, nil, &DivergedError{Step: row.Step, Msg: "the schedule has left the numbers: " + err.Error()}
	}
	r.sched, r.theta, r.previous = next, theta, d.mean
	if r.average != nil {
		images := float64(len(b.t)) / 1000
		follow(r.average, next, math.Pow(0.5, images/r.cfg.ScheduleEMAHalflife))
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
