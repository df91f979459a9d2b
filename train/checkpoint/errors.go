package checkpoint

import (
	"errors"
	"fmt"

	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
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

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// inFile returns err as an *Error about a file, with the tensor that it names.
func inFile(file string, err error) error {
	var own *Error
	var state *nn.StateError
	var format *safetensors.FormatError
	var damage *atomicdir.DamageError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		return err
	case errors.As(err, &damage):
		return &Error{File: damage.File, Msg: damage.Msg, Err: err}
	case errors.As(err, &state):
		return &Error{File: file, Tensor: state.Tensor, Msg: state.Reason, Err: err}
	case errors.As(err, &format):
		return &Error{File: file, Tensor: format.Tensor, Msg: format.Msg, Err: err}
	}
	return &Error{File: file, Msg: err.Error(), Err: err}
}

func tensorf(tensor, format string, args ...any) error {
	return &Error{File: stateFile, Tensor: tensor, Msg: fmt.Sprintf(format, args...)}
}
