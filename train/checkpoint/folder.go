package checkpoint

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

// part is a file of a folder with its decoder.
type part struct {
	name     string
	optional bool
	decode   func([]byte) error
}

// readParts reads files in their order, and stops at the first that cannot be used.
func readParts(folder *atomicdir.Stored, parts []part) error {
	for _, f := range parts {
		if err := f.read(folder); err != nil {
			return err
		}
	}
	return nil
}

func (f part) read(folder *atomicdir.Stored) error {
	b, err := folder.ReadFile(f.name)
	if f.optional && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = f.decode(b)
	}
	return inFile(f.name, err)
}

// readFolder returns the result of read for the folder dir. Its errors are *[Error].
func readFolder[T any](dir string, read func(*atomicdir.Stored) (T, error)) (T, error) {
	var out T
	err := atomicdir.Read(dir, func(folder *atomicdir.Stored) (err error) {
		out, err = read(folder)
		return err
	})
	if err != nil {
		var none T
		return none, inFile(filepath.Base(dir), err)
	}
	return out, nil
}

// writeFolder writes a folder of these files.
func writeFolder(dir string, files map[string][]byte, replace bool) error {
	return atomicdir.Write(dir, replace, func(f *atomicdir.Folder) error { return fill(f, files) })
}

// fill writes files in a folder.
func fill(f *atomicdir.Folder, files map[string][]byte) error {
	for name, b := range files {
		if err := f.WriteFile(name, b); err != nil {
			return err
		}
	}
	return nil
}

// writeTensors writes a safetensors file in a folder, and returns its SHA-256 in hex.
func writeTensors(folder *atomicdir.Folder, name string, tensors *safetensors.File) (hash string, err error) {
	file, err := folder.Create(name)
	if err != nil {
		return "", err
	}
	out := bufio.NewWriterSize(file, 1<<18) // a network has hundreds of small tensors
	err = safetensors.Write(out, tensors)
	if err == nil {
		err = out.Flush()
	}
	if err := errors.Join(err, file.Close()); err != nil {
		return "", inFile(name, err)
	}
	return file.Hash(), nil
}

// The files of a model folder.
const (
	configFile   = "config.json"
	weightsFile  = "model.safetensors"
	scheduleFile = "schedule.json"
	BasisFile    = "basis.safetensors"
	classesFile  = "classes.json"
)

// The files of a run folder, in addition to those of a model.
const (
	runFile     = "run.json"
	stateFile   = "state.safetensors"
	networkFile = "network.json"
	familyFile  = "family.safetensors"

	runFormat  = "anisoflight-run"
	runVersion = 1
)

// Error is returned for a file of a folder that cannot be used.
type Error struct {
	File   string // such as "model.safetensors"
	Tensor string // at fault; empty for the whole file
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

// inFile returns err as an *Error about a file, with the tensor that it names and without the path of a file error:
// callers know the folder by its name.
func inFile(file string, err error) error {
	var named *Error
	var state *nn.StateError
	var format *safetensors.FormatError
	var damage *atomicdir.DamageError
	var path *fs.PathError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &named):
		return err
	case errors.As(err, &damage):
		return &Error{File: damage.File, Msg: damage.Msg, Err: err}
	case errors.As(err, &state):
		return &Error{File: file, Tensor: state.Tensor, Msg: state.Reason, Err: err}
	case errors.As(err, &format):
		return &Error{File: file, Tensor: format.Tensor, Msg: format.Msg, Err: err}
	case errors.As(err, &path):
		err = path.Err
	}
	return &Error{File: file, Msg: err.Error(), Err: err}
}

func tensorf(tensor, format string, args ...any) error {
	return &Error{File: stateFile, Tensor: tensor, Msg: fmt.Sprintf(format, args...)}
}
