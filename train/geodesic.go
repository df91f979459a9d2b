package train

import (
	"context"
	"errors"

	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train/data"
)

// GeodesicSettings says which schedule MakeGeodesic makes, and from how much data.
type GeodesicSettings struct {
	T        float64 // default 6400
	G0       float64 // default 1e-9
	C        float64 // default 1
	Knots    int     // default 32
	Points   int     // noise levels, uniform in ln σ; default 160
	Samples  int     // images per noise level; default 24
	Batch    int     // samples per device program; default 128
	Seed     uint64
	PerClass bool // one path per class
	Progress func(done, total int)
}

// Geodesic is a schedule of least energy, with what is known about its energy.
type Geodesic struct {
	Schedule *schedule.Schedule // with parameters and the energy density
	Reports  []schedule.Report  // per row of the schedule
}

// MakeGeodesic measures the energy density F(σ) of a network in one pass over the data
// and returns the isotropic schedule of least energy.
func MakeGeodesic(ctx context.Context, m *kernels.Model, w *kernels.Weights, d *data.Dataset, set GeodesicSettings) (*Geodesic, error) {
	return nil, errors.New("train: not ready")
}
