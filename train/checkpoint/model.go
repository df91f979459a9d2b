package checkpoint

import (
	"fmt"

	"github.com/anisoflight/anisoflight/kernels/unet"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// Error says which file, and which tensor of it, does not make a model or a run.
type Error struct {
	File   string // such as "model.safetensors"
	Tensor string // empty where the fault is not one tensor's
	Msg    string
	Err    error // the cause; may be nil
}

// Error implements the error interface.
func (e *Error) Error() string {
	if e.Tensor == "" {
		return fmt.Sprintf("%s: %s", e.File, e.Msg)
	}
	return fmt.Sprintf("%s: tensor %q: %s", e.File, e.Tensor, e.Msg)
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// Model is a network with its values and, where it has one, its own schedule.
type Model struct {
	Net      *unet.Net
	Values   [][]float32        // in PyTorch's layout and the order of Net.Params
	Schedule *schedule.Schedule // nil: the model has none of its own
	Basis    *basis.Basis       // dense basis of that schedule; nil where the family's name says it all
	Hash     string             // sha256 of model.safetensors in hex; set by LoadModel and SaveModel
}

// LoadModel reads the model folder dir. What cannot be used is an *[Error].
func LoadModel(dir string) (*Model, error) { return nil, &Error{File: dir, Msg: "not stored"} }

// SaveModel writes m as the folder dir, which appears whole or not at all, and
// sets m.Hash. An existing folder is an error that wraps fs.ErrExist unless
// replace is true.
func SaveModel(dir string, m *Model, replace bool) error {
	return &Error{File: dir, Msg: "not stored"}
}
