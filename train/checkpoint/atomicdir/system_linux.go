package atomicdir

import (
	"errors"

	"golang.org/x/sys/unix"
)

// exchangeAtOnce swaps two folders in one step, or in two where the file system cannot.
func exchangeAtOnce(a, b string) error {
	err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return exchangeByTwo(a, b)
	}
	return err
}
