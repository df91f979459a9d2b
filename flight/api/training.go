package api

import "github.com/go-json-experiment/json/jsontext"

// Ramps lists the shapes of a learning rate over a run.
var Ramps = []string{"cosine", "constant", "published", "completed"}

// CreateRun makes a training run. Everything but its name is the training configuration, by the same names as in the
// configuration files (stage, dataset, model or network, schedule, family, batch, lr, ...); package train owns and
// documents those.
type CreateRun struct {
	Name    string `json:"name" name:"new"`   // name of the run; required
	Replace bool   `json:"replace,omitempty"` // delete a run of this name first, if it is not running
	// the training configuration: every other field
	Config jsontext.Value `json:",embed"`
}

// SetDefaults sets what tags cannot say.
func (r *CreateRun) SetDefaults() { r.Config = jsontext.Value("{}") }

// MarshalJSON writes the configuration's fields beside the name, as they travel.
func (r CreateRun) MarshalJSON() ([]byte, error) {
	type plain CreateRun // without this method
	return embedding(plain(r))
}

// StartRun lets a run train in the background until kimg thousand images have been seen in all.
type StartRun struct {
	Run string `json:"run"` // name of the run; required
	// thousands of images seen in all at its end; default the length of its configuration
	Kimg float64 `json:"kimg" above:"0"`
}

// TrainStep takes steps of a run that is created or paused and returns one row for each. In an exchange the rows sent,
// image fixed_shape_tensor and label int32, are one step's batch per message.
//
// Rows out: step int64, then kimg, loss, energy, grad_norm, schedule_grad_norm, schedule_grad_stderr, lr, schedule_lr,
// seconds, schedule_grad_cosine, and share_TERM and stderr_TERM of every term of the estimator, float64; what a stage
// or the estimator's mode lacks is NaN.
type TrainStep struct {
	Run   string `json:"run"`                       // name of the run; required
	Steps int    `json:"steps" default:"1" min:"1"` // number of steps
}

// WatchRun returns a run's rows from a given one on, and live until the run is done, cancelled or paused.
//
// Rows out: as of TrainStep.
type WatchRun struct {
	Run    string `json:"run"`               // name of the run; required
	From   int    `json:"from" min:"0"`      // number of rows to leave out; default 0
	NoWait bool   `json:"no_wait,omitempty"` // end after the rows that there are
}

// RunName is the request of PauseRun, CancelRun, GetRun and DeleteRun.
type RunName struct {
	Run string `json:"run"` // name of the run; required
}

// SaveModel writes the averaged network of a run, with the run's schedule, as models/NAME.
type SaveModel struct {
	Run     string `json:"run"`             // name of the run; required
	Name    string `json:"name" name:"new"` // name of the model; required
	Replace bool   `json:"replace"`         // replace a model of that name
}
