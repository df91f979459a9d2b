package train

import (
	"math"

	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train/data"
	"github.com/anisoflight/anisoflight/train/setting"
)

// The streams of package latent that training draws from.
const (
	streamTime  uint32 = 0x74696d65
	streamSigma uint32 = 0x7369676d
)

// times returns n times in [0, T) as a function of seed and step: independent and uniform, or stratified, one from each
// of n equal parts of [0, T] in random order, so that no class of a sorted batch keeps to one part.
func times(seed uint64, step int64, n int, T float64, stratified bool) []float64 {
	key := latent.Uint64(seed, streamTime, uint64(step))
	t := make([]float64, n)
	for i := range t {
		t[i] = unit(key, uint64(i))
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

// unit returns a number uniform in [0, 1).
func unit(key, counter uint64) float64 {
	return float64(latent.Uint64(key, streamTime, counter)>>11) * 0x1p-53
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
		own := draw[i*(j+1) : (i+1)*(j+1)]
		for _, x := range own[1:] {
			g = append(g, math.Exp(2*(mean+std*float64(own[0])+extra*float64(x))))
		}
	}
	return g
}

// batch is what a step adds to the images.
type batch struct {
	n              int       // samples
	rows           []int     // of the schedule, per sample; nil in pretrain
	t              []float64 // [B]
	g, gdot, omega []float64 // [B*J]; omega with the weights of the classes
	network        []float64 // [B*J] variances at which the network is trained; nil for g
}

// draw chooses the noise levels of a step for n samples of these classes.
func (r *Run) draw(n int, labels []int32) (batch, error) {
	step, j := r.step+1, r.model.J()
	if r.theta == nil {
		b := batch{n: n, g: variances(r.cfg.Seed, step, n, j, *r.cfg.PMean, r.cfg.PStd, r.cfg.PStdSubspace)}
		for i, g := range b.g {
			b.g[i] = r.model.Range().Clamp(g)
		}
		b.omega = make([]float64, len(b.g))
		for i, g := range b.g {
			b.omega[i] = r.model.EDMWeight(g) * r.weightOf(labels, i/j)
		}
		return b, nil
	}
	b, err := r.drawAlongSchedule(n, labels)
	if err == nil && r.cfg.PStdSubspace > 0 {
		b.network = variances(r.cfg.Seed, step, n, j, 0, 0, r.cfg.PStdSubspace)
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
		own := func(x []float64) []float64 { return x[i*j : (i+1)*j] }
		l.sched.Eval(b.rows[i], t, own(b.g), own(b.gdot))
		for k := range own(b.omega) {
			own(b.omega)[k] = schedule.Omega(own(b.g)[k], own(b.gdot)[k], l.cfg.C) * l.weightOf(labels, i)
		}
	}
	return b, nil
}

// weightOf returns the weight of a sample's class.
func (l *learner) weightOf(labels []int32, i int) float64 {
	if labels == nil {
		return l.weights.weight(-1)
	}
	return l.weights.weight(labels[i])
}

// The values of Config.ClassWeighting.
const (
	WeightNone     = "none"
	WeightBalanced = "balanced"
)

// Weightings lists the values of Config.ClassWeighting.
var Weightings = []string{WeightNone, WeightBalanced}

// classWeights are n/(C·n_y), so that the mean over the data of a weighted loss is the mean over classes of their
// means. Nil weighs all samples alike.
type classWeights map[int32]float64

func newClassWeights(c Config, d *data.Dataset) (classWeights, error) {
	if c.ClassWeighting != WeightBalanced {
		return nil, nil
	}
	counts := map[int32]float64{}
	for i := range d.Len() {
		label := d.Label(i)
		if label < 0 {
			return nil, setting.Errorf("class_weighting",
				"must be none unless every image has a label, got balanced and no label for image %d", i)
		}
		counts[label]++
	}
	return balanced(counts), nil
}

// balanced returns the weights of classes of so many images.
func balanced(counts map[int32]float64) classWeights {
	var n float64
	for _, of := range counts {
		n += of
	}
	w := classWeights{}
	for label, of := range counts {
		w[label] = n / (float64(len(counts)) * of)
	}
	return w
}

// weight returns the weight of a class: for one that the data set does not have, the largest of those that it has.
func (w classWeights) weight(label int32) float64 {
	if w == nil {
		return 1
	}
	if v, ok := w[label]; ok {
		return v
	}
	var most float64
	for _, v := range w {
		most = math.Max(most, v)
	}
	return most
}
