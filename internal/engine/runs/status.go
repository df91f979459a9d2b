package runs

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
)

// The states of a run.
const (
	Created   = "created"   // no step taken
	Running   = "running"   // in the background, or stepped by requests; the latter is not stored
	Paused    = "paused"    // may go on
	Done      = "done"      // reached what StartRun asked for; may be started for more
	Cancelled = "cancelled" // ended by the user
	Failed    = "failed"    // ended by an error
	Broken    = "broken"    // cannot be read; may be deleted or replaced
)

// status is the contents of status.json: what was asked of the run and what came of it. Its step and its configuration
// are in the state.
type status struct {
	State   string         `json:"state"`
	Created time.Time      `json:"created"`
	Target  float64        `json:"target_kimg,omitempty"`
	Error   string         `json:"error,omitempty"`
	Stopped *api.Stopped   `json:"stopped,omitempty"`
	Memory  *api.RunMemory `json:"memory,omitempty"`
	// Parameters is that of api.RunInfo.
	Parameters int     `json:"parameters,omitempty"`
	Seconds    float64 `json:"seconds,omitempty"` // that of api.RunInfo
	// Restored says that the last state was damaged, and from where the run went on.
	Restored string `json:"restored,omitempty"`
	// Notes are sentences on what gives poor results.
	Notes []string `json:"notes,omitempty"`
	// Outcome is that of api.RunInfo.
	Outcome *api.Outcome `json:"outcome,omitempty"`
}

// hashHead and hashTail enclose the SHA-256 in hex at the end of status.json. It is that of the file without it.
const (
	hashHead = `,"sha256":"`
	hashTail = `"}`
)

// isOver reports whether a run does not go on by itself.
func (s *status) isOver() bool { return s.State == Done || s.State == Cancelled || s.State == Failed }

func (s *status) encode() ([]byte, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(text)
	return fmt.Appendf(text[:len(text)-1], "%s%x%s", hashHead, sum, hashTail), nil
}

// readStatus reads the status.json of a run's folder. A run that was running when its server died is paused.
func readStatus(folder string) (s status, err error) {
	text, err := os.ReadFile(StatusPath(folder))
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

// decodeStatus decodes the text of status.json. It refuses all that encode has not written.
func decodeStatus(text []byte) (s status, err error) {
	end := len(text) - len(hashHead) - 2*sha256.Size - len(hashTail)
	if end < 0 {
		return s, errors.New("it is not what was written: it ends without its SHA-256")
	}
	rest := append(slices.Clone(text[:end]), '}')
	if string(text[end:]) != fmt.Sprintf("%s%x%s", hashHead, sha256.Sum256(rest), hashTail) {
		return s, errors.New("it is not what was written: its SHA-256 has changed")
	}
	d := json.NewDecoder(bytes.NewReader(rest))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return s, err
	}
	if states := []string{Created, Running, Paused, Done, Cancelled, Failed}; !slices.Contains(states, s.State) {
		return s, fmt.Errorf("state must be one of %v, got %q", states, s.State)
	}
	return s, nil
}

// StatusPath returns the path of the status of the run in folder.
func StatusPath(folder string) string { return filepath.Join(folder, "status.json") }

// StatePath returns the path of its last stored state.
func StatePath(folder string) string { return filepath.Join(folder, "state") }

// PreviousPath returns the path of the state before that.
func PreviousPath(folder string) string { return filepath.Join(folder, "previous") }

// CheckStatus reads the status of a run, and returns what is wrong with it.
func CheckStatus(folder string) error {
	_, err := readStatus(folder)
	return err
}

// MendStatus replaces the damaged status of a run by that of a run which is paused at its stored state. The caller
// makes sure that nobody else writes it.
func MendStatus(folder string) error {
	state, err := checkpoint.DescribeRun(StatePath(folder))
	if err != nil {
		return err
	}
	st := status{State: Created, Created: time.Now().UTC()}
	if state.Step > 0 {
		st.State = Paused
	}
	if info, err := os.Stat(folder); err == nil {
		st.Created = info.ModTime().UTC()
	}
	text, err := st.encode()
	if err != nil {
		return err
	}
	return atomicdir.WriteFile(StatusPath(folder), text)
}
