package train

import (
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
)

// Snapshot is what samplers see of a run: immutable.
type Snapshot struct {
	Model    *kernels.Model     // the network on the device, with the basis of the family
	Weights  *kernels.Weights   // moving average
	Schedule *schedule.Schedule // nil in pretrain without one
	Step     int64
}

// Release ends the caller's hold.
func (s *Snapshot) Release() { s.Weights.Release() }
