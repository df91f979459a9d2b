package crash

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
)

// disks are disks that refuse effects: which ones, and with which error.
var disks = []struct {
	name    string
	says    syscall.Errno
	refuses func(effect string) bool
}{
	{"full", syscall.ENOSPC, func(effect string) bool { return effect != "remove" }},
	{"read-only", syscall.EROFS, func(string) bool { return true }},
	{"that is a layer of an image", syscall.EXDEV, func(effect string) bool {
		return effect == "rename" || effect == "exchange"
	}},
}

// onDisk does an operation on a disk that refuses from its at-th effect on. It returns the number of effects and the
// operation's error.
func onDisk(t *testing.T, dir string, index, at, disk int, dev *device.Device) (effects int, err error) {
	t.Helper()
	restore := atomicdir.Intercept(func(f atomicdir.Effect) error {
		if effects++; effects <= at || !disks[disk].refuses(f.Name) {
			return nil
		}
		return disks[disk].says
	})
	defer restore()
	err = attempt(t, dir, index, dev)
	return effects, err
}

// TestDisksThatRefuse: an operation on a disk that is full or read-only, or moves no folders, fails with STORAGE, and
// the folder is as before or, if the failure came after the change, as after.
func TestDisksThatRefuse(t *testing.T) {
	if !*all {
		t.Skip("it takes a minute: go test ./internal/crash -args -all")
	}
	eachOperation(t, func(t *testing.T, f *folders, index int) {
		whole := f.copyOf(t)
		effects, err := onDisk(t, whole, index, 1<<30, 0, f.dev)
		if err != nil {
			t.Fatal(err)
		}
		f.after, f.lists[1] = f.reopened(t, whole)
		for k, disk := range disks {
			for at := range effects {
				dir := f.copyOf(t)
				_, err := onDisk(t, dir, index, at, k, f.dev)
				what := fmt.Sprintf("%s from effect %d of %d on: %v", disk.name, at, effects, err)
				if err != nil && api.ErrorOf(err).Code != api.Storage {
					t.Errorf("%s: the code is %s, want %s", what, api.ErrorOf(err).Code, api.Storage)
				}
				f.check(t, what, dir, err == nil)
			}
		}
	})
}
