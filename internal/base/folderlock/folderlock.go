// Package folderlock keeps two processes from working on one data folder.
package folderlock

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// LockFile lies in the data folder. It stays when its holder ends: removing it would let two processes hold two files
// of one name.
const LockFile = "lock"

// Holder says which process works on a data folder.
type Holder struct {
	PID     int       `json:"pid"`
	Program string    `json:"program"` // such as "anisoflight serve"
	Started time.Time `json:"started"`
	Address string    `json:"address,omitempty"` // the location that it serves the folder at; empty: nowhere, or not yet
}

// Lock is the exclusive right to a data folder. The kernel releases it when the process ends, however it ends.
//
// Whether a folder is in use is decided by flock(2) alone: what is written in the file, the holder, may be that of a
// process which was killed. On NFS, Linux makes flock a lock of the server's, which holds between machines unless the
// folder is mounted with nolock or local_lock=flock: then only processes of one machine are kept apart.
type Lock struct {
	file   *os.File
	holder Holder
}

// Held is the error of a folder that another process works on.
type Held struct {
	Dir string
	Holder
}

func (h *Held) Error() string {
	who := "another process"
	if h.PID != 0 {
		who = fmt.Sprintf("process %d (%s", h.PID, h.Program)
		if h.Address != "" {
			who += ", " + h.Address
		}
		who += ")"
	}
	return fmt.Sprintf("the data folder %q is in use by %s; stop it, or choose another --data", h.Dir, who)
}

// Acquire takes the lock of an existing folder for a program. If another process has it, the error is a [*Held].
func Acquire(dir, program string) (*Lock, error) {
	file, err := os.OpenFile(filepath.Join(dir, LockFile), os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	for {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	if errors.Is(err, syscall.EWOULDBLOCK) {
		held := &Held{Dir: dir}
		// What cannot be read is being written at this moment.
		if text, err := io.ReadAll(file); err == nil {
			_ = json.Unmarshal(text, &held.Holder)
		}
		_ = file.Close() // nothing has been written
		return nil, held
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("data folder: cannot lock %s: %w", file.Name(), err), file.Close())
	}
	l := &Lock{file: file, holder: Holder{
		PID: os.Getpid(), Program: program,
		Started: time.Now().UTC().Truncate(time.Second),
	}}
	if err := l.write(l.holder); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return l, nil
}

// Publish tells other processes where the folder is served; the empty address tells them that it no longer is.
func (l *Lock) Publish(address string) error {
	l.holder.Address = address
	return l.write(l.holder)
}

// Release unlocks the folder.
func (l *Lock) Release() error {
	return errors.Join(l.file.Truncate(0), l.file.Close())
}

func (l *Lock) write(h Holder) error {
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	if err := l.file.Truncate(0); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	if _, err := l.file.WriteAt(append(text, '\n'), 0); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	return nil
}
