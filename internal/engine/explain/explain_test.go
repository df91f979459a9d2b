package explain

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// A device that runs out of memory is the caller's to know; any other failure of a program is internal.
func TestOutOfMemoryIsTooLarge(t *testing.T) {
	for words, want := range map[string]api.Code{
		"running: PJRT error (code=8): Out of memory while trying to allocate 1073741824 bytes.": api.TooLarge,
		"while executing: RESOURCE_EXHAUSTED: no memory":                                         api.TooLarge,
		"PJRT error (code=13): something else":                                                   api.Internal,
	} {
		err := fmt.Errorf("step 3: %w", &device.ProgramError{Key: "step 8", Phase: "run", Err: errors.New(words)})
		if got := api.ErrorOf(Error(err)).Code; got != want {
			t.Errorf("%q becomes %s, want %s", words, got, want)
		}
	}
}

// What a disk refuses is STORAGE, however deep it lies, and tells no path.
func TestDiskErrorsAreStorage(t *testing.T) {
	for errno, sentence := range map[syscall.Errno]string{
		syscall.ENOSPC: "The disk is full; nothing was changed",
		syscall.EDQUOT: "The disk quota is used up; nothing was changed",
		syscall.EFBIG:  "The system allows no file of that size; nothing was changed",
		syscall.EROFS:  "The disk is read-only; nothing was changed",
		syscall.EIO:    "The disk fails; nothing was changed",
		syscall.EACCES: "The server has no access to its data folder; nothing was changed",
		syscall.EPERM:  "The server has no access to its data folder; nothing was changed",
		syscall.ENOENT: "A file or folder of the server's data folder is gone; nothing was changed",
		syscall.ESTALE: "The disk no longer has the file (stale file handle); nothing was changed",
		syscall.EMFILE: "The server has too many open files; raise its limit (ulimit -n); nothing was changed",
		syscall.ENFILE: "The system has too many open files; nothing was changed",
		syscall.EXDEV: "The folder cannot be renamed (cross-device link): it is in a layer of a container image, or on " +
			"another file system; copy the data folder to a volume (cp -a), and serve the copy; nothing was changed",
		syscall.ENAMETOOLONG: "The path of the data folder is too long for the system; nothing was changed",
		syscall.ENODEV:       "The system refuses the data folder: no such device; nothing was changed",
	} {
		deep := &os.PathError{Op: "write", Path: "/secret/place", Err: errno}
		for _, err := range []error{
			deep, fmt.Errorf("storing: %w", deep), errors.Join(errors.New("first"), deep),
			&checkpoint.Error{File: "state.safetensors", Msg: deep.Error(), Err: deep},
		} {
			got := api.ErrorOf(Error(err))
			if got.Code != api.Storage || got.Message != sentence || strings.Contains(got.Error(), "secret") {
				t.Errorf("%v becomes %v", err, got)
			}
		}
	}
}
