package explain

import (
	"errors"
	"syscall"

	"github.com/anisoflight/anisoflight/flight/api"
)

// storage are the errors of a disk, with what they mean.
var storage = []struct {
	err      error
	sentence string
}{
	{syscall.ENOSPC, "The disk is full"},
	{syscall.EDQUOT, "The disk quota is used up"},
	{syscall.EFBIG, "The system allows no file of that size"},
	{syscall.EROFS, "The disk is read-only"},
	{syscall.EIO, "The disk fails"},
	{syscall.EACCES, "The server has no access to its data folder"},
	{syscall.EPERM, "The server has no access to its data folder"},
}

// Disk says in a sentence what is wrong with the disk, where that is what an error tells of; else it is empty.
func Disk(err error) string {
	for _, s := range storage {
		if errors.Is(err, s.err) {
			return s.sentence
		}
	}
	return ""
}

// storageError is the answer to an operation that the disk did not let store anything.
func storageError(sentence string) error {
	return api.Errorf(api.Storage, "%s; nothing was changed", sentence).
		WithHint("Make room, or mend the server's data folder, and ask again.")
}
