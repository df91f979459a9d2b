// Package explain maps the errors of lower layers to the codes of the contract.
package explain

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/base/setting"
	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/internal/search"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/kernels/processes"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
	"github.com/anisoflight/anisoflight/train/data"
)

// Error maps the errors of lower layers to the codes of the contract. It is the only place that does. An error may wrap
// several that it knows: the order of the cases decides. An error that it does not know stays as it is and becomes
// INTERNAL.
func Error(err error) error {
	var (
		apiError *api.Error
		table    *schedule.Error
		label    *schedule.LabelError
		vectors  *basis.Error
		images   *data.Error
		argument *kernels.InputError
		field    *setting.Error
		step     *train.MemoryError
		program  *device.MemoryError
		failed   *device.ProgramError
		damage   *atomicdir.DamageError
		end      *processes.EndError
		compared *search.ImagesError
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &apiError), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &damage):
		return api.Errorf(api.Damaged, "The stored file %s", damage.Error()).WithHint("%s", api.DamageHint)
	case Disk(err) != "":
		return api.Errorf(api.Storage, "%s; nothing was changed", Disk(err)).
			WithHint("Make room, or mend the server's data folder, and ask again.")
	case errors.As(err, &label):
		return api.Errorf(api.BadRequest, "The schedule has a row for each class and none for label %d", label.Label).
			WithHint("Choose among the labels that ListSchedules gives for it.")
	case errors.As(err, &table) && table.Row >= 0:
		return api.Errorf(api.BadSchedule, "Row %d of the schedule: %s", table.Row, table.Msg)
	case errors.As(err, &table):
		return api.Errorf(api.BadSchedule, "The schedule is refused: %s", table.Msg)
	case errors.As(err, &vectors):
		return api.Errorf(api.BadSchedule, "The basis is refused: %s", strings.TrimPrefix(vectors.Error(), "basis: "))
	case errors.As(err, &field) && field.TooLarge:
		return api.Errorf(api.TooLarge, "%s", field.Error())
	case errors.As(err, &field):
		return api.Errorf(api.BadRequest, "%s", field.Error())
	case errors.As(err, &images):
		return api.Errorf(api.BadTensor, "%s", upperFirst(strings.TrimPrefix(images.Error(), "data: ")))
	case errors.As(err, &step):
		return api.Errorf(api.TooLarge, "%s", upperFirst(step.Error())).WithHint("%s", memoryHint)
	case errors.As(err, &program):
		return api.Errorf(api.TooLarge,
			"A program on the device needs an estimated %s of its memory, %s are available",
			MiB(program.Needed), MiB(program.Available)).WithHint("Ask for smaller batches. %s", memoryHint)
	case errors.As(err, &failed) && failed.OutOfMemory():
		return api.Errorf(api.TooLarge, "The device ran out of memory").WithHint("Ask for smaller batches. %s", memoryHint)
	case errors.As(err, &end):
		return api.Errorf(api.RunNotRunnable, "The run cannot go on: %s", end.Error())
	case errors.As(err, &compared):
		return api.Errorf(api.BadRequest, "The images cannot be compared with samples: %w", compared.Unwrap())
	case errors.Is(err, search.ErrTooLarge):
		return api.Errorf(api.TooLarge, "%s", upperFirst(search.ErrTooLarge.Error())).
			WithHint("Leave learn out, or set budget to seconds.")
	case errors.Is(err, search.ErrNotFinite):
		return api.Errorf(api.NotFinite, "The answers or samples of the network are not finite").
			WithHint("Look at its output at high and low noise levels; train it again with lower learning rates, or name " +
				"other solvers.")
	case errors.Is(err, sampler.ErrLeft):
		return api.Errorf(api.Cancelled, "The client left before anything was measured")
	case errors.As(err, &argument):
		return api.Errorf(api.BadRequest, "%s %s", argument.Field, argument.Msg)
	}
	return err
}

const memoryHint = "Other runs, models and processes share the memory; the server's memory_limit overrides what it " +
	"finds available."

// MiB returns a number of bytes as text.
func MiB(bytes int64) string { return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20)) }

// upperFirst makes a sentence of an error's words.
func upperFirst(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}

// storage are the errors of a disk.
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
	{
		syscall.EXDEV, "The folder cannot be renamed (cross-device link): it is in a layer of a container image, or on " +
			"another file system; copy the data folder to a volume (cp -a), and serve the copy",
	},
	{syscall.ENOENT, "A file or folder of the server's data folder is gone"},
	{syscall.ESTALE, "The disk no longer has the file (stale file handle)"},
	{syscall.EMFILE, "The server has too many open files; raise its limit (ulimit -n)"},
	{syscall.ENFILE, "The system has too many open files"},
	{syscall.ENAMETOOLONG, "The path of the data folder is too long for the system"},
}

// Disk returns a sentence for an error of the disk, and "" for any other error.
func Disk(err error) string {
	for _, s := range storage {
		if errors.Is(err, s.err) {
			return s.sentence
		}
	}
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return "The system refuses the data folder: " + errno.Error()
	}
	return ""
}
