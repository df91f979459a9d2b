// Package folderlock prevents two processes from using one data folder at the same time.
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

// LockFile is a file in the data folder. It is never removed: else two processes could lock two files of this name.
const LockFile = "lock"

// Holder describes the process that has locked a data folder.
type Holder struct {
	PID     int       `json:"pid"`
	Program string    `json:"program"` // such as "anisoflight serve"
	Started time.Time `json:"started"`
	Address string    `json:"address,omitempty"` // location of its server; empty if it does not listen
	Ending  bool      `json:"ending,omitempty"`  // whether its server is shutting down
}

// Lock is the lock of a data folder. The kernel releases it when the process ends, however it ends.
//
// Only flock(2) decides whether a folder is locked: the file may describe a process that was killed. On NFS, Linux
// locks the file on the NFS server, so that the lock holds between machines, unless the folder is mounted with nolock
// or local_lock=flock: then it holds only on one machine.
type Lock struct {
	file   *os.File
	holder Holder
}

// InUseError is the error of a folder that another process has locked.
type InUseError struct {
	Dir string
	Holder
}

func (h *InUseError) Error() string {
	who := "another process"
	if h.PID != 0 {
		who = fmt.Sprintf("process %d (%s", h.PID, h.Program)
		if h.Address != "" {
			who += ", " + h.Address
		}
		who += ")"
	}
	if h.Ending {
		return fmt.Sprintf("the data folder %q is in use by %s, which is ending; try again when it has stored its runs",
			h.Dir, who)
	}
	return fmt.Sprintf("the data folder %q is in use by %s; stop it, or choose another --data", h.Dir, who)
}

// Acquire locks an existing folder for a program. If another process has the lock, the error is a [*InUseError].
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
		held := &InUseError{Dir: dir}
		if text, err := io.ReadAll(file); err == nil {
			_ = json.Unmarshal(text, &held.Holder) // fails while the holder writes the file
		}
		_ = file.Close()
		return nil, held
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("data folder: cannot lock %s: %w", file.Name(), err), file.Close())
	}
	l := &Lock{file: file, holder: Holder{
		PID: os.Getpid(), Program: program, Started: time.Now().UTC().Truncate(time.Second),
	}}
	if err := l.Publish(""); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return l, nil
}

// Release unlocks the folder.
func (l *Lock) Release() error {
	return errors.Join(l.file.Truncate(0), l.file.Close())
}

// Publish tells other processes the location of the folder's server; it is empty if there is none, or none any more.
func (l *Lock) Publish(address string) error {
	l.holder.Ending = address == "" && l.holder.Address != ""
	l.holder.Address = address
	text, err := json.Marshal(l.holder)
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
