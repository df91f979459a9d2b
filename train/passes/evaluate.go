package passes

import (
	"context"
	"math"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train/data"
	"github.com/anisoflight/anisoflight/train/setting"
	"github.com/anisoflight/anisoflight/train/stats"
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
// The times are stratified once more within each part, so the energy that the rows
// tell, T² times the mean over t of Σ_j loss_j, is free of bias. Image, noise and place
// in [0, 1] of every sample depend on the seed alone, so evaluations of two schedules,
// or of two networks, are paired; see Compare. Rows are sorted by label, subspace and t.
func Evaluate(ctx context.Context, m *kernels.Model, w *kernels.Weights, d *data.Dataset, s *schedule.Schedule,
	set EvaluateSettings,
) ([]EvaluationRow, error) {
	set = set.resolved()
	labels := s.Labels()
	if labels == nil {
		labels = []int{-1}
	}
	var out []EvaluationRow
	err := along(ctx, m, w, d, s, set, func(row int, at, residual []float64) {
		rows := partRows(s, row, m.J(), set, at, residual)
		for i := range rows {
			rows[i].Label = int32(labels[row])
		}
		out = append(out, rows...)
	})
	return out, err
}

func (set EvaluateSettings) resolved() EvaluateSettings {
	setting.Default(&set.Points, 32)
	setting.Default(&set.Samples, 64)
	setting.Default(&set.C, 1)
	return set
}

// along measures the residuals |P_j r|² of every row of s at Points·Samples stratified
// times and hands them over row by row, both flat [samples*J]: the weights ω_j, and the
// residuals.
func along(ctx context.Context, m *kernels.Model, w *kernels.Weights, d *data.Dataset, s *schedule.Schedule,
	set EvaluateSettings, take func(row int, weight, residual []float64),
) error {
	if s.J() != m.J() && s.J() != 1 {
		return setting.Errorf("schedule", "must have one subspace or the %d of the model's basis, got %d", m.J(), s.J())
	}
	n, subspaces := set.Points*set.Samples, m.J()
	g, weight := make([]float64, n*subspaces), make([]float64, n*subspaces)
	for row := range s.Rows() {
		var pool []int
		if labels := s.Labels(); labels != nil {
			if pool = poolOf(d, labels[row]); pool == nil {
				return setting.Errorf("dataset", "must hold images of every class of the schedule, got none of class %d",
					labels[row])
			}
		}
		meter := newMeter(m, w, d, pool, set.Seed, set.Batch)
		meter.progress, meter.total, meter.done = set.Progress, s.Rows()*n, row*n
		for i := range n {
			t := meter.time(i, n, s.T())
			for j := range subspaces {
				v, dot := s.At(row, min(j, s.J()-1)).Eval(t)
				g[i*subspaces+j], weight[i*subspaces+j] = v, schedule.Omega(v, dot, set.C)
			}
		}
		residual, err := meter.residuals(ctx, g)
		if err != nil {
			return err
		}
		take(row, weight, residual)
	}
	return nil
}

// partRows averages the samples of each part.
func partRows(s *schedule.Schedule, row, subspaces int, set EvaluateSettings, weight,
	residual []float64,
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
			e := EvaluationRow{Subspace: int32(j), T: t, Sigma: math.Sqrt(v), Loss: stats.Mean(loss)}
			e.Residual, e.Stderr = stats.MeanStderr(part)
			rows = append(rows, e)
		}
	}
	return rows
}
