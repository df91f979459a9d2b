package train

import (
	"context"
	"math"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train/data"
)

// EvaluateSettings says how finely a network is measured along a schedule.
type EvaluateSettings struct {
	Points  int     // equal parts of [0, T]; default 32
	Samples int     // images per part and row of the schedule; default 64
	C       float64 // of the loss weight; default 1
	Batch   int     // samples per device program; default 128
	Seed    uint64  // of images, noise and times
	// Progress is told of samples done; may be nil.
	Progress func(done, total int)
}

// EvaluationRow is the loss of one subspace at one noise level.
type EvaluationRow struct {
	Label    int32 // −1 where classes share the schedule
	Subspace int32
	T        float64 // middle of the part of [0, T]
	Sigma    float64 // √g_j there
	Loss     float64 // mean of ω_j |P_j r|² over the part
	Residual float64 // mean of |P_j r|²
	Stderr   float64 // standard error of Residual
}

// Evaluate measures the trajectory loss of a network along s, part by part of [0, T].
// A schedule of one subspace may be measured by a model of several; it then has the
// same g in each.
//
// The times are stratified once more within each part, so Energy of the rows is free
// of bias. Image, noise and place in [0, 1] of every sample depend on the seed alone,
// so evaluations of two schedules, or two networks, are paired (EnergyDifference).
// Rows are sorted by label, subspace and t.
func Evaluate(ctx context.Context, m *kernels.Model, w *kernels.Weights, d *data.Dataset, s *schedule.Schedule, set EvaluateSettings) ([]EvaluationRow, error) {
	orDefault(&set.Points, 32)
	orDefault(&set.Samples, 64)
	orDefault(&set.C, 1)
	if s.J() != m.J() && s.J() != 1 {
		return nil, fieldf("schedule", "it has %d subspaces, the model's basis %d", s.J(), m.J())
	}
	labels := s.Labels()
	if labels == nil {
		labels = []int{-1}
	}
	var out []EvaluationRow
	for row, label := range labels {
		var pool []int
		if label >= 0 {
			if pool = poolOf(d, label); pool == nil {
				return nil, fieldf("dataset", "it has no image of class %d, which the schedule has a row for", label)
			}
		}
		meter := newMeter(m, w, d, pool, set.Seed, set.Batch)
		meter.progress, meter.total = set.Progress, len(labels)*set.Points*set.Samples
		meter.done = row * set.Points * set.Samples
		rows, err := evaluateRow(ctx, meter, s, row, set)
		if err != nil {
			return nil, err
		}
		for i := range rows {
			rows[i].Label = int32(label)
		}
		out = append(out, rows...)
	}
	return out, nil
}

// evaluateRow evaluates one row of the schedule.
func evaluateRow(ctx context.Context, meter *meter, s *schedule.Schedule, row int, set EvaluateSettings) ([]EvaluationRow, error) {
	n, subspaces := set.Points*set.Samples, meter.model.J()
	g, weight := make([]float64, n*subspaces), make([]float64, n*subspaces)
	for i := range n {
		u := float64(latent.Uint64(meter.seed, streamTime, uint64(i))>>11) * 0x1p-53
		t := s.T() * (float64(i) + u) / float64(n)
		for j := range subspaces {
			v, dot := s.At(row, min(j, s.J()-1)).Eval(t)
			g[i*subspaces+j], weight[i*subspaces+j] = v, schedule.Omega(v, dot, set.C)
		}
	}
	residual, err := meter.residuals(ctx, 0, g)
	if err != nil {
		return nil, err
	}
	rows := make([]EvaluationRow, 0, set.Points*subspaces)
	loss, part := make([]float64, set.Samples), make([]float64, set.Samples)
	for j := range subspaces {
		for p := range set.Points {
			for k := range part {
				at := (p*set.Samples+k)*subspaces + j
				part[k], loss[k] = residual[at], weight[at]*residual[at]
			}
			t := s.T() * (float64(p) + 0.5) / float64(set.Points)
			v, _ := s.At(row, min(j, s.J()-1)).Eval(t)
			e := EvaluationRow{Subspace: int32(j), T: t, Sigma: math.Sqrt(v), Loss: mean(loss)}
			e.Residual, e.Stderr = meanStderr(part)
			rows = append(rows, e)
		}
	}
	return rows, nil
}

// Energy returns the energy of the schedule that rows were evaluated along,
//
//	E = T² · mean over t of Σ_j loss_j,
//
// classes counting alike, and its standard error from the differences between
// neighbouring parts of [0, T].
func Energy(rows []EvaluationRow, T float64) (energy, stderr float64) {
	return energyOf(partSums(rows), T)
}

// EnergyDifference returns the energy of a less that of b, and its standard error, for
// evaluations with the same settings and seed: paired, so that most of the noise is
// gone. The schedules may end at different T.
func EnergyDifference(a, b []EvaluationRow, Ta, Tb float64) (difference, stderr float64) {
	x, y := partSums(a), partSums(b)
	if len(x) != len(y) {
		panic("train: evaluations of different settings are not paired")
	}
	for i := range x {
		x[i] = x[i]*Ta*Ta - y[i]*Tb*Tb
	}
	return energyOf(x, 1)
}

// partSums returns Σ_j loss_j for every label and part, in order.
func partSums(rows []EvaluationRow) []float64 {
	type key struct {
		label int32
		t     float64
	}
	at := map[key]int{}
	var sums []float64
	for _, r := range rows {
		k := key{r.Label, r.T}
		i, ok := at[k]
		if !ok {
			i = len(sums)
			at[k] = i
			sums = append(sums, 0)
		}
		sums[i] += r.Loss
	}
	return sums
}

// energyOf returns T² times the mean of loss by part, and the standard error that
// neighbouring parts tell: with d the differences within pairs, √Σd²/n (the collapsed
// strata of survey sampling; what changes from part to part makes it a little larger).
func energyOf(loss []float64, T float64) (energy, stderr float64) {
	var squares float64
	for i := 0; i+1 < len(loss); i += 2 {
		d := loss[i+1] - loss[i]
		squares += d * d
	}
	return T * T * mean(loss), T * T * math.Sqrt(squares) / float64(len(loss))
}
