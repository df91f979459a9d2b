package checkpoint

import (
	"encoding/json"

	"github.com/anisoflight/anisoflight/kernels/unet"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// Run is the whole state of a training run between two steps.
type Run struct {
	Config  json.RawMessage // the training configuration
	Network *unet.Config    // nil for a network without parameters

	Step     int64 // steps taken
	Seen     int64 // images trained on
	Position int64 // in the order of the data set
	Skipped  int64 // steps that changed nothing because a gradient was not finite

	Params, M, V, EMA [][]float32 // of the network; M, V and EMA nil if it is frozen
	Updates           int64       // of the network's optimiser

	Schedule       *schedule.Schedule // as it stands; nil where there is none
	Basis          *basis.Basis       // dense basis; nil where the family's name says it all
	ThetaM, ThetaV [][][]float64      // Adam's moments [row][subspace][K−1]; nil where the schedule is not trained
	ThetaUpdates   []int64            // per row

	Rows [][]float64 // metric rows so far, one value per column
}

// LoadRun reads the run folder dir. What cannot be used is an *[Error].
func LoadRun(dir string) (*Run, error) { return nil, &Error{File: dir, Msg: "not stored"} }

// SaveRun writes r as the folder dir, in place of what is there, which appears
// whole or not at all.
func SaveRun(dir string, r *Run) error { return &Error{File: dir, Msg: "not stored"} }
