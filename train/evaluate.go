package train

import (
	"context"
	"errors"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train/data"
)

// EvaluateSettings says how finely a network is measured along a schedule.
type EvaluateSettings struct {
	Points  int     // equal parts of [0, T]; default 32
	Samples int     // images per part; default 64
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
	Sigma    float64 // √g_j(T)
	Loss     float64 // mean of ω_j |P_j r|²
	Residual float64 // mean of |P_j r|²
	Stderr   float64 // standard error of Residual
}

// Evaluate measures the trajectory loss along s, part by part of [0, T].
func Evaluate(ctx context.Context, m *kernels.Model, w *kernels.Weights, d *data.Dataset, s *schedule.Schedule, set EvaluateSettings) ([]EvaluationRow, error) {
	return nil, errors.New("train: not ready")
}
