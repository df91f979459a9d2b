package connect

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/anisoflight/anisoflight/internal/engine/catalog"
)

const (
	// temporaryPrefix heads the names of temporary folders, the Python package's among them.
	temporaryPrefix = "anisoflight-"
	// fresh is how long such a folder is left alone, since its maker may not have locked it yet.
	fresh = time.Minute
)

// temporary makes a folder that this user alone can read, until release. It is locked as a data folder is, so that the
// next process removes the folder of one that was killed: such folders go first.
func temporary(program string) (dir string, release func() error, err error) {
	sweepTemporary(program)
	if dir, err = os.MkdirTemp("", temporaryPrefix); err != nil {
		return "", nil, err
	}
	lock, err := catalog.Acquire(dir, program)
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	return dir, func() error { return errors.Join(os.RemoveAll(dir), lock.Release()) }, nil
}

// sweepTemporary removes the temporary folders of this user whose processes have ended without doing so. What cannot be
// removed stays.
func sweepTemporary(program string) {
	found, _ := filepath.Glob(filepath.Join(os.TempDir(), temporaryPrefix+"*")) // the pattern is good
	for _, dir := range found {
		if !abandoned(dir) {
			continue
		}
		if lock, err := catalog.Acquire(dir, program); err == nil {
			_ = os.RemoveAll(dir)
			_ = lock.Release()
		}
	}
}

// abandoned reports whether a path is a temporary folder of this user which is not fresh: one that nobody uses, unless
// it is locked.
func abandoned(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() || time.Since(info.ModTime()) < fresh {
		return false
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); !ok || int(owner.Uid) != os.Geteuid() {
		return false
	}
	_, err = os.Lstat(filepath.Join(dir, catalog.LockFile))
	return err == nil
}
