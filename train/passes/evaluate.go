// Package passes measures networks, schedules and data in passes over a data set that need no run:
//
//	MakeGeodesic   the schedule of least energy, from the energy density F(σ)
//	Evaluate       the loss of a network along a schedule, by noise level
//	Predict        how much energy bases and schedules per class can save, before training
//	PCA            a basis of principal components
//
// The result of a pass is a function of its settings and seed, the network and the data. The image and the noise of
// sample k depend on the seed alone: two passes with the same seed are paired.
//
// Begin with evaluate.go, then meter.go.
package passes

import (
	"context"
	"math"

	"github.com/anisoflight/anisoflight/internal/base/setting"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train/data"
)

// EvaluateSettings are the settings of Evaluate.
type EvaluateSettings struct {
	Points  int     `default:"32"` // equal parts of [0, T]
	Samples int     `default:"64"` // images per part and row of the schedule
	C       float64 // of the loss weight; default the data's variance, Σλ
	Batch   int     // samples per device program; default 128
	Seed    uint64  // of images, noise and times
	// Progress, if not nil, is called with the number of samples done.
	Progress func(done, total int)
}

// EvaluationRow is the loss of one subspace at one noise level.
type EvaluationRow struct {
	Label    int32 // −1 if classes share the schedule
	Subspace int32
	T        float64 // middle of the part of [0, T]
	Sigma    float64 // √g_j there
	Loss     float64 // mean of ω_j |P_j r|² over the part
	Residual float64 // mean of |P_j r|²
	Stderr   float64 // standard error of Residual
}

// Evaluate measures the trajectory loss of a network along s, in equal parts of [0, T]. A model of several subspaces
// may measure a schedule of one; it then has the same g in each.
//
// The times of each part are stratified, so T² times the mean over t of Σ_j loss_j is an unbiased estimate of the
// energy. Image, noise and place in [0, 1] of every sample depend on the seed alone: evaluations of two schedules, or
// of two networks, are paired. Rows are sorted by label, subspace and t.
func Evaluate(ctx context.Context, m *kernels.Model, w *kernels.Weights, d *data.Dataset, s *schedule.Schedule,
	set EvaluateSettings,
) ([]EvaluationRow, error) {
	setting.SetDefaults(&set)
	T := s.T()
	if err := DefaultScale(ctx, &T, &set.C, d, m.Range()); err != nil {
		return nil, err
	}
	if s.J() != m.J() && s.J() != 1 {
		return nil, setting.Errorf("schedule", "must have one subspace or the %d of the model's basis, got %d", m.J(), s.J())
	}
	labels, pools := []int{-1}, map[int][]int{-1: nil} // nil for all images
	if s.Labels() != nil {
		labels, pools = s.Labels(), imagesByClass(d)
		for _, label := range labels {
			if pools[label] == nil {
				return nil, setting.Errorf("dataset", "must hold images of every class of the schedule, got none of class %d",
					label)
			}
		}
	}
	n, subspaces := set.Points*set.Samples, m.J()
	g, weight := make([]float64, n*subspaces), make([]float64, n*subspaces)
	p := &progress{report: set.Progress, total: s.Rows() * n}
	var out []EvaluationRow
	for row, label := range labels {
		meter := newMeter(m, w, d, pools[label], set.Seed, set.Batch, p)
		for i := range n {
			t := meter.time(i, n, s.T())
			for j := range subspaces {
				v, dot := s.At(row, min(j, s.J()-1)).Eval(t)
				g[i*subspaces+j], weight[i*subspaces+j] = v, schedule.Omega(v, dot, set.C)
			}
		}
		residual, err := meter.residuals(ctx, g)
		if err != nil {
			return nil, err
		}
		rows := partRows(s, row, subspaces, set, weight, residual)
		for i := range rows {
			rows[i].Label = int32(label)
		}
		out = append(out, rows...)
	}
	return out, nil
}

// LossSettings are the settings of Losses.
type LossSettings struct {
	Samples  int
	C        float64               // of the loss weight
	Order    int                   // of the loss weight
	Seed     uint64                // of images, noise and times
	Progress func(done, total int) // as in EvaluateSettings
}

// Losses returns T² times the trajectory loss of a network along s for each sample; the mean is the energy. The time of
// sample k is in the k-th of equal parts of [0, T]. Its image and noise depend on the seed alone: the losses of two
// schedules, or of two networks, are paired.
func Losses(ctx context.Context, m *kernels.Model, w *kernels.Weights, d *data.Dataset, s *schedule.Schedule,
	set LossSettings,
) ([]float64, error) {
	n, J, T := set.Samples, m.J(), s.T()
	meter := newMeter(m, w, d, nil, set.Seed, 0, &progress{report: set.Progress, total: n})
	g, gdot := make([]float64, n*J), make([]float64, n*J)
	for i := range n {
		row, err := s.Row(int(d.Label(meter.image(i))))
		if err != nil {
			return nil, err
		}
		s.Eval(row, meter.time(i, n, T), g[i*J:(i+1)*J], gdot[i*J:(i+1)*J])
	}
	residual, err := meter.residuals(ctx, g)
	if err != nil {
		return nil, err
	}
	losses := make([]float64, n)
	for at, r := range residual {
		losses[at/J] += T * T * schedule.OmegaOfOrder(set.Order, T, g[at], gdot[at], set.C) * r
	}
	return losses, nil
}

// partRows averages the samples of each part.
func partRows(s *schedule.Schedule, row, subspaces int, set EvaluateSettings, weight, residual []float64,
) []EvaluationRow {
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
			e := EvaluationRow{Subspace: int32(j), T: t, Sigma: math.Sqrt(v), Loss: Mean(loss)}
			e.Residual, e.Stderr = MeanStderr(part)
			rows = append(rows, e)
		}
	}
	return rows
}

// Mean returns the mean of x, summed in order.
func Mean(x []float64) float64 {
	var sum float64
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// MeanStderr returns the mean of independent samples x and its standard error, 0 for a single sample.
func MeanStderr(x []float64) (mean, stderr float64) {
	mean = Mean(x)
	if len(x) < 2 {
		return mean, 0
	}
	var sum float64
	for _, v := range x {
		sum += (v - mean) * (v - mean)
	}
	n := float64(len(x))
	return mean, math.Sqrt(sum / (n - 1) / n)
}
