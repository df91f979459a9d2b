package atomicdir

import (
	"errors"

	"golang.org/x/sys/unix"
)

// exchangeAtOnce swaps two folders in one step, or in two where the file system cannot.
func exchangeAtOnce(a, b string) error {
	err := unix.RenamexNp(a, b, unix.RENAME_SWAP)
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.EINVAL) {
		return exchangeByTwo(a, b)
	}
	return err
}
