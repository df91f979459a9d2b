package atomicdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// errLocked is returned where another process holds the folder.
var errLocked = errors.New("the folder is in use")

// reserve makes a hidden folder in parent that no sweep removes before unlock.
func reserve(sys system, parent string) (hidden string, unlock func(), err error) {
	for {
		if hidden, err = sys.MkdirTemp(parent, Prefix+"*"); err != nil {
			return "", nil, err
		}
		unlock, err = lock(hidden)
		if err == nil {
			if _, err = os.Lstat(hidden); err == nil {
				return hidden, unlock, nil
			}
			unlock()
		}
		if !errors.Is(err, errLocked) && !errors.Is(err, fs.ErrNotExist) { // a sweep came between: once more
			return "", nil, errors.Join(err, sys.RemoveAll(hidden))
		}
	}
}

// Leftovers returns what crashes have left in the folder parent, which [Sweep] removes.
func Leftovers(parent string) (left []string, err error) {
	err = eachLeftover(parent, func(path string) error {
		left = append(left, path)
		return nil
	})
	return left, err
}

// Sweep removes what crashes have left in the folder parent. What a process, this one or
// another, is still filling stays.
func Sweep(parent string) error { return eachLeftover(parent, host{}.RemoveAll) }

// eachLeftover calls do with every leftover in a folder while it is locked.
func eachLeftover(parent string, do func(path string) error) error {
	left, err := filepath.Glob(filepath.Join(parent, Prefix+"*"))
	if err != nil {
		return err
	}
	for _, path := range left {
		unlock, err := lock(path)
		if errors.Is(err, errLocked) || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		err = do(path)
		unlock()
		if err != nil {
			return err
		}
	}
	return nil
}
