package passes

import (
	"github.com/anisoflight/anisoflight/internal/testing/traintest"
)

var (
	gaussian = traintest.Gaussian
	whole    = traintest.Whole
	onDevice = traintest.OnDevice
	edm      = traintest.EDM
	within   = traintest.Within
)
