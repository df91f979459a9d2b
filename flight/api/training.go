package api

import "github.com/go-json-experiment/json/jsontext"

// Ramps lists the shapes of the learning rate.
var Ramps = []string{"cosine", "constant", "published", "completed"}

// CreateRun makes a training run. All fields except name and replace are those of the training configuration, with the
// same names as in configuration files; see train.Config.
type CreateRun struct {
	Name    string `json:"name" name:"new"`   // name of the run; required
	Replace bool   `json:"replace,omitempty"` // first delete a run of this name, if it is not running
	// all other fields: the training configuration
	Config jsontext.Value `json:",embed"`
}

// SetDefaults sets what tags cannot say.
func (r *CreateRun) SetDefaults() { r.Config = jsontext.Value("{}") }

// MarshalJSON writes the fields of the configuration next to the name.
func (r CreateRun) MarshalJSON() ([]byte, error) {
	type plain CreateRun // without this method
	return embedding(plain(r))
}

// StartRun trains a run in the background until it has seen Kimg thousand images in total.
type StartRun struct {
	Run string `json:"run"` // name of the run; required
	// total length in thousands of images; default the length of the configuration
	Kimg float64 `json:"kimg" above:"0"`
}

// TrainStep takes steps of a run that is created or paused and returns one row for each.
//
// Rows in, in an exchange, one batch per step: image tensor, label int32. Rows out: rows of training.
type TrainStep struct {
	Run   string `json:"run"`                       // name of the run; required
	Steps int    `json:"steps" default:"1" min:"1"` // number of steps
}

// WatchRun returns the rows of a run, and follows it until it is done, cancelled or paused.
//
// Rows out: rows of training.
type WatchRun struct {
	Run    string `json:"run"`               // name of the run; required
	From   int    `json:"from" min:"0"`      // number of rows to skip; default 0
	NoWait bool   `json:"no_wait,omitempty"` // end after the last row that exists
}

// RunName is the request of PauseRun, CancelRun, GetRun and DeleteRun.
type RunName struct {
	Run string `json:"run"` // name of the run; required
}

// SaveModel stores the averaged network of a run, with the run's schedule, as a model.
type SaveModel struct {
	Run     string `json:"run"`             // name of the run; required
	Name    string `json:"name" name:"new"` // name of the model; required
	Replace bool   `json:"replace"`         // replace a model of that name
	Force   bool   `json:"force"`           // save also a network that has diverged, in place of NOT_FINITE
}
