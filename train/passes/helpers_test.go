package passes

import "github.com/anisoflight/anisoflight/train/traintest"

var (
	gaussian = traintest.Gaussian
	whole    = traintest.Whole
	onDevice = traintest.OnDevice
	edm      = traintest.EDM
	within   = traintest.Within
)
