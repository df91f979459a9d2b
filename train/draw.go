package train

import (
	"math"

	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/schedule"
)

// The streams of package latent that training draws from.
const (
	streamTime  uint32 = 0x74696d65
	streamSigma uint32 = 0x7369676d
)

// times returns n times in [0, T) as a function of seed and step: independent and uniform, or stratified, one from each
// of n equal parts of [0, T]. Their order is random, so that the classes of a sorted batch have times of all parts.
func times(seed uint64, step int64, n int, T float64, stratified bool) []float64 {
	key := latent.Uint64(seed, streamTime, uint64(step))
	t := make([]float64, n)
	for i := range t {
		t[i] = float64(latent.Uint64(key, streamTime, uint64(i))>>11) * 0x1p-53 // uniform in [0, 1)
	}
	if stratified {
		for i, part := range latent.Perm(key, streamTime, n) {
			t[i] = (float64(part) + t[i]) / float64(n)
		}
	}
	for i := range t {
		t[i] *= T
	}
	return t
}

// variances returns n·j noise variances of EDM's score-matching loss as a function of seed and step,
//
//	ln σ_j = mean + std·n + extra·n_j,   g_j = σ_j²,
//
// n unit normal per sample and n_j per sample and subspace.
func variances(seed uint64, step int64, n, j int, mean, std, extra float64) []float64 {
	draw := make([]float32, n*(j+1))
	latent.Normal(latent.Uint64(seed, streamSigma, uint64(step)), streamSigma, draw)
	g := make([]float64, 0, n*j)
	for i := range n {
		normals := draw[i*(j+1) : (i+1)*(j+1)]
		for _, x := range normals[1:] {
			g = append(g, math.Exp(2*(mean+std*float64(normals[0])+extra*float64(x))))
		}
	}
	return g
}

// batch has the noise levels of a step's samples.
type batch struct {
	n              int       // samples
	rows           []int     // [B] of the schedule; nil in pretrain
	t              []float64 // [B]
	g, gdot, omega []float64 // [B*J]; omega_j is the weight of the loss
	network        []float64 // [B*J] variances at which the network is trained; nil for g
}

// draw chooses the noise levels of a step for n samples of these classes.
func (r *Run) draw(n int, labels []int32) (batch, error) {
	step, j := r.step+1, r.model.J()
	if r.cfg.Stage == Pretrain {
		b := batch{n: n, g: variances(r.cfg.Seed, step, n, j, *r.cfg.PMean, r.cfg.PStd, r.cfg.stdSubspace())}
		for i, g := range b.g {
			b.g[i] = r.model.Range().Clamp(g)
		}
		b.omega = make([]float64, len(b.g))
		for i, g := range b.g {
			b.omega[i] = r.model.EDMWeight(g)
		}
		return b, nil
	}
	b, err := r.drawAlongSchedule(n, labels)
	if err == nil && r.cfg.stdSubspace() > 0 {
		b.network = variances(r.cfg.Seed, step, n, j, 0, 0, r.cfg.stdSubspace())
		for i, g := range b.g {
			b.network[i] = r.model.Range().Clamp(b.network[i] * g)
		}
	}
	return b, err
}

// drawAlongSchedule chooses noise levels on the schedule for samples of these classes.
func (l *learner) drawAlongSchedule(n int, labels []int32) (batch, error) {
	j := l.sched.J()
	b := batch{n: n, rows: make([]int, n), t: times(l.cfg.Seed, l.step+1, n, l.sched.T(), *l.cfg.Stratified)}
	b.g, b.gdot, b.omega = make([]float64, n*j), make([]float64, n*j), make([]float64, n*j)
	for i, t := range b.t {
		label := -1
		if labels != nil {
			label = int(labels[i])
		}
		var err error
		if b.rows[i], err = l.sched.Row(label); err != nil {
			return b, err
		}
		g, gdot := b.g[i*j:(i+1)*j], b.gdot[i*j:(i+1)*j]
		l.sched.Eval(b.rows[i], t, g, gdot)
		for k := range g {
			b.omega[i*j+k] = schedule.OmegaOfOrder(l.cfg.Order, l.sched.T(), g[k], gdot[k], l.cfg.C)
		}
	}
	return b, nil
}
