package crash

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// mounted mounts a file system of a few megabytes with a copy of the folder in it.
func (f *folders) mounted(t *testing.T) (root, dir string) {
	t.Helper()
	root = t.TempDir()
	if err := unix.Mount("tmpfs", root, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("only root may mount file systems: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(root, unix.MNT_DETACH) })
	dir = filepath.Join(root, "data")
	if err := os.CopyFS(dir, os.DirFS(f.dir)); err != nil {
		t.Fatal(err)
	}
	return root, dir
}

// fill leaves a number of bytes of a file system free.
func fill(t *testing.T, root string, free int64) (filler string) {
	t.Helper()
	var fs unix.Statfs_t
	if err := unix.Statfs(root, &fs); err != nil {
		t.Fatal(err)
	}
	filler = filepath.Join(root, "filler")
	if err := os.WriteFile(filler, make([]byte, max(0, int64(fs.Bavail)*fs.Bsize-free)), 0o644); err != nil {
		t.Fatal(err)
	}
	return filler
}

// TestTmpfs: every operation on a real disk that is full or read-only leaves the folder as before or as after.
func TestTmpfs(t *testing.T) {
	eachOperation(t, func(t *testing.T, f *folders, index int) {
		whole := f.copyOf(t)
		if err := attempt(t, whole, index, f.dev); err != nil {
			t.Fatal(err)
		}
		f.after, f.lists[1] = f.reopened(t, whole)
		for _, free := range []int64{0, 4 << 10, 16 << 10} {
			root, dir := f.mounted(t)
			filler := fill(t, root, free)
			err := attempt(t, dir, index, f.dev)
			if removeErr := os.Remove(filler); removeErr != nil {
				t.Fatal(removeErr)
			}
			what := fmt.Sprintf("with %d bytes free: %v", free, err)
			f.check(t, what, dir, err == nil)
		}
		root, dir := f.mounted(t)
		if err := unix.Mount("", root, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
			t.Fatal(err)
		}
		err := attempt(t, dir, index, f.dev)
		if remountErr := unix.Mount("", root, "", unix.MS_REMOUNT, ""); remountErr != nil {
			t.Fatal(remountErr)
		}
		if err == nil && !operations[index].behind {
			t.Error("it is acknowledged on a read-only disk")
		}
		f.check(t, fmt.Sprintf("read-only: %v", err), dir, false)
	})
}
