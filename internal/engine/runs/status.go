package runs

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
)

// The states of a run.
const (
	Created   = "created"   // no step taken
	Running   = "running"   // in the background
	Paused    = "paused"    // may go on
	Done      = "done"      // reached what StartRun asked for; may be started for more
	Cancelled = "cancelled" // ended by the user
	Failed    = "failed"    // ended by an error
	Broken    = "broken"    // what is stored of it cannot be read; it may be deleted, or replaced
)

// status is what a run's status.json holds: what was asked of the run and what came of it. How far it is, and its
// configuration, are in the state beside.
type status struct {
	State   string         `json:"state"`
	Created time.Time      `json:"created"`
	Target  float64        `json:"target_kimg,omitempty"`
	Error   string         `json:"error,omitempty"`
	Stopped *api.Stopped   `json:"stopped,omitempty"`
	Memory  *api.RunMemory `json:"memory,omitempty"`
}

// readStatus reads status.json back, and refuses whatever has not been written by storeStatus. A run that was running
// when its server died goes on from its last stored state.
func readStatus(path string) (s status, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return s, errors.New("status.json cannot be read")
	}
	if s, err = decodeStatus(text); err != nil {
		return s, fmt.Errorf("status.json: %w", err)
	}
	if s.State == Running {
		s.State = Paused
	}
	return s, nil
}

// decodeStatus is readStatus of a file's text.
func decodeStatus(text []byte) (status, error) {
	var s struct {
		status
		Step, Kimg, Config json.RawMessage // of older programs: the state's are true
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return s.status, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return s.status, errors.New("there is more than one JSON value")
	}
	if known := []string{Created, Running, Paused, Done, Cancelled, Failed}; !slices.Contains(known, s.State) {
		return s.status, fmt.Errorf("state must be one of %v, got %q", known, s.State)
	}
	return s.status, nil
}

// storeStatus writes status.json, where it is not what is written there already.
func (r *Run) storeStatus() error {
	r.statusFile.Lock()
	defer r.statusFile.Unlock()
	r.mu.Lock()
	text, err := json.Marshal(r.status)
	same := bytes.Equal(text, r.keeper.status) || r.keeper.gone
	r.mu.Unlock()
	if err != nil || same {
		return err
	}
	if err := atomicdir.WriteFile(StatusPath(r.folder), text); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keeper.status = text
	return nil
}
