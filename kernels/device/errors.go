package device

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrDonated is returned when a buffer is used after a run that it was donated to.
	ErrDonated = errors.New("buffer was donated to an earlier run; keep the run's outputs instead")
	// ErrReleased is returned when a buffer is used after Release.
	ErrReleased = errors.New("buffer was released")
	// ErrLowered is returned for a program for which [Config.Lower] returned true.
	ErrLowered = errors.New("program was written out, not compiled")
	// ErrClosed is returned by every call on a closed device.
	ErrClosed = errors.New("device is closed")
)

// PluginError reports a plugin file that cannot be used.
type PluginError struct {
	Path   string
	Source string // where the path came from, such as "ANISOFLIGHT_PLUGIN"
	Reason string // what is wrong and what to do
}

func (e *PluginError) Error() string {
	return fmt.Sprintf("plugin %s (from %s): %s", e.Path, e.Source, e.Reason)
}

// ProgramError reports a program that could not be built, compiled or run.
type ProgramError struct {
	Key   string // the program's key
	Phase string // "build", "compile", "run", or the argument that does not fit
	Err   error
}

func (e *ProgramError) Error() string {
	return fmt.Sprintf("device program %q: %s: %v", e.Key, e.Phase, e.Err)
}

func (e *ProgramError) Unwrap() error { return e.Err }

// OutOfMemory reports whether the device had too little memory for the program. go-xla has PJRT's code, which is 8 for
// RESOURCE_EXHAUSTED, only in the message.
func (e *ProgramError) OutOfMemory() bool {
	message := e.Err.Error()
	return strings.Contains(message, "PJRT error (code=8)") || strings.Contains(message, "RESOURCE_EXHAUSTED")
}

// MemoryError reports a program whose estimated memory is not available. It has not been compiled.
type MemoryError struct {
	Key       string // the program's key
	Needed    int64  // bytes beyond the arguments: outputs and temporaries
	Available int64
}

func (e *MemoryError) Error() string {
	return fmt.Sprintf("device program %q needs an estimated %d bytes, %d are available", e.Key, e.Needed, e.Available)
}

// argumentError reports an argument that does not fit the program's parameter. Nothing has been run or donated.
func argumentError(key string, place int, err error) error {
	return &ProgramError{Key: key, Phase: fmt.Sprint("argument ", place), Err: err}
}

// recovered turns a panic of gomlx into a *ProgramError.
func recovered(key, phase string, err *error) {
	r := recover()
	if r == nil {
		return
	}
	cause, ok := r.(error)
	if !ok {
		cause = fmt.Errorf("%v", r)
	}
	*err = &ProgramError{Key: key, Phase: phase, Err: cause}
}
