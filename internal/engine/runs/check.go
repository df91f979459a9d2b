package runs

import (
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

// CheckStatus reads the status of a run, and returns what is wrong with it; hashed is whether it carries its hash.
func CheckStatus(folder string) (hashed bool, err error) {
	_, hashed, err = readStatus(StatusPath(folder))
	return hashed, err
}

// MendStatus writes the status of a run anew: with its hash, where it can be read, else as that of a run which is
// paused at its stored state. Nobody else writes it meanwhile.
func MendStatus(folder string) error {
	st, _, err := readStatus(StatusPath(folder))
	if err != nil {
		state, err := checkpoint.DescribeRun(StatePath(folder))
		if err != nil {
			return err
		}
		if st = (status{State: Created, Created: time.Now().UTC()}); state.Step > 0 {
			st.State = Paused
		}
		if info, err := os.Stat(folder); err == nil {
			st.Created = info.ModTime().UTC()
		}
	}
	return writeStatus(folder, &st)
}

// FallBack puts the state before in the place of a damaged one, which it keeps aside until the next state is stored,
// and returns it. Where it is damaged, too, nothing changes. Nobody stores a state of the run meanwhile.
func FallBack(folder string) (*checkpoint.Run, error) {
	before, err := checkpoint.LoadRun(PreviousPath(folder))
	if err != nil {
		return nil, err
	}
	return before, atomicdir.Swap(StatePath(folder), PreviousPath(folder))
}

// isDamage reports whether err says that a stored state is not what was written. A disk that fails, a file of a newer
// program and the like are no damage.
func isDamage(err error) bool {
	var damage *atomicdir.DamageError
	var format *safetensors.FormatError
	return errors.As(err, &damage) || errors.As(err, &format) || errors.Is(err, fs.ErrNotExist)
}
