package crash

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/anisoflight/anisoflight/internal/testing/devicetest"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
)

// The environment of a child process: the test's own program, which does one operation and is killed meanwhile.
const (
	childFolder = "CRASH_FOLDER"
	childDoes   = "CRASH_OPERATION" // its index
	childAt     = "CRASH_AT"        // the effect before which it is killed, from 0 on; −1: none
	childBytes  = "CRASH_BYTES"     // or the byte of a file before which it is killed; −1: none
)

// all is whether every storing operation is tried: go test ./internal/crash -args -all.
var all = flag.Bool("all", false, "try every storing operation, not only one of each kind of thing")

func TestMain(m *testing.M) {
	if dir := os.Getenv(childFolder); dir != "" {
		if err := child(context.Background(), dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0) // as it is: what a server stores at its end is not stored
	}
	// What a kill leaves is what the kernel holds, on whichever disk; thousands of flushes of a real one take long.
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() && os.Getenv("TMPDIR") == "" {
		_ = os.Setenv("TMPDIR", "/dev/shm")
	}
	os.Exit(m.Run())
}

// child does an operation on a folder. It prints each effect before it happens, and "done" when it is acknowledged.
func child(ctx context.Context, dir string) error {
	at, most, index := number(childAt), number(childBytes), number(childDoes)
	dev, err := device.Open(device.Config{Plugin: "go"})
	if err != nil {
		return err
	}
	e, err := open(ctx, dir, dev)
	if err != nil {
		return err
	}
	if most >= 0 { // a write that makes a file grow beyond raises a signal, which kills
		grown := make(chan os.Signal, 1)
		signal.Notify(grown, syscall.SIGXFSZ)
		go func() {
			<-grown
			kill()
		}()
		limit := syscall.Rlimit{Cur: uint64(most), Max: uint64(most)}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			return err
		}
	}
	effects := 0
	atomicdir.Intercept(func(f atomicdir.Effect) error {
		if effects == at {
			kill()
		}
		effects++
		fmt.Println(f.Name, filepath.Base(f.Path))
		return nil
	})
	if err := operations[index].perform(ctx, e); err != nil {
		return err
	}
	fmt.Println("done")
	return nil
}

// kill ends the process as a power failure does, except that the kernel still writes its buffers.
func kill() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

func number(name string) int {
	n, err := strconv.Atoi(os.Getenv(name))
	if err != nil {
		panic(err)
	}
	return n
}

// run has a child do an operation. It returns its effects, and whether it was acknowledged.
func run(t *testing.T, dir string, index, at, most int) (effects []string, done bool) {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0])
	c.Env = append(os.Environ(), childFolder+"="+dir, childDoes+"="+strconv.Itoa(index), childAt+"="+strconv.Itoa(at),
		childBytes+"="+strconv.Itoa(most), "GOTRACEBACK=none")
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		if lines.Text() == "done" {
			done = true
			continue
		}
		effects = append(effects, lines.Text())
	}
	if err != nil && at < 0 && most < 0 || err == nil && !done {
		t.Fatalf("%s: %v\n%s%s", operations[index].name, err, out, stderr.Bytes())
	}
	return effects, done
}

// folders are the folder before an operation, and its state before and after.
type folders struct {
	dir           string
	before, after state
	lists         [2][]string // of files
	behind        bool        // that of the operation
	dev           *device.Device
}

// eachOperation calls do in a subtest for each operation, with the folders before it.
func eachOperation(t *testing.T, do func(t *testing.T, f *folders, index int)) {
	t.Helper()
	f := &folders{dir: filepath.Join(t.TempDir(), "data"), dev: devicetest.PureGo(t)}
	if err := makeFolder(t.Context(), f.dir, f.dev); err != nil {
		t.Fatal(err)
	}
	f.before, f.lists[0] = f.reopened(t, f.copyOf(t))
	for i, op := range operations {
		if op.short || *all {
			t.Run(op.name, func(t *testing.T) {
				f.behind = op.behind
				do(t, f, i)
			})
		}
	}
}

// attempt does an operation on a folder as it is, and returns its error.
func attempt(t *testing.T, dir string, index int, dev *device.Device) error {
	t.Helper()
	e, err := open(t.Context(), dir, dev)
	if err != nil {
		return err
	}
	err = operations[index].perform(t.Context(), e)
	_ = e.Close(t.Context())
	return err
}

// copyOf returns a copy of the folder.
func (f *folders) copyOf(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.CopyFS(dir, os.DirFS(f.dir)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// reopened opens a folder and returns its state and its files.
func (f *folders) reopened(t *testing.T, dir string) (state, []string) {
	t.Helper()
	e, err := open(t.Context(), dir, f.dev)
	if err != nil {
		t.Fatalf("the folder does not open: %v", err)
	}
	list, err := files(dir)
	if err != nil {
		t.Fatal(err)
	}
	s, err := stateOf(t.Context(), e)
	if err != nil {
		t.Errorf("not all of it can be read: %v", err)
	}
	if err := e.Close(t.Context()); err != nil {
		t.Error(err)
	}
	return s, list
}

// check checks a folder after a fault: it is as before or as after the operation, and as after if that was
// acknowledged.
func (f *folders) check(t *testing.T, what, dir string, done bool) {
	t.Helper()
	got, list := f.reopened(t, dir)
	if f.behind {
		got = got.between(f.before, f.after)
	}
	was, is := got.differs(f.before), got.differs(f.after)
	switch {
	case done && is != "":
		t.Errorf("%s: acknowledged and lost: %s", what, is)
	case was != "" && is != "":
		t.Errorf("%s: neither before (%s) nor after (%s)", what, was, is)
	}
	if !slices.Equal(list, f.lists[0]) && !slices.Equal(list, f.lists[1]) {
		t.Errorf("%s: there lies %q, want %q or %q", what, list, f.lists[0], f.lists[1])
	}
}

// killAll kills an operation before each of its effects, and within files that it writes. It returns the number of
// kills by the name of the effect.
func killAll(t *testing.T, f *folders, index int) (points map[string]int) {
	t.Helper()
	points = map[string]int{}
	whole := f.copyOf(t)
	effects, done := run(t, whole, index, -1, -1)
	if !done || len(effects) == 0 {
		t.Fatalf("%d effects, done %t", len(effects), done)
	}
	f.after, f.lists[1] = f.reopened(t, whole)
	if f.after.differs(f.before) == "" {
		t.Fatal("the operation changes nothing")
	}
	for at := range effects {
		dir := f.copyOf(t)
		_, done := run(t, dir, index, at, -1)
		f.check(t, fmt.Sprintf("killed before %q, effect %d of %d", effects[at], at, len(effects)), dir, done)
		points[strings.Fields(effects[at])[0]]++
	}
	for _, most := range []int{0, 1, 100, 1000, 5000} {
		dir := f.copyOf(t)
		_, done := run(t, dir, index, -1, most)
		f.check(t, fmt.Sprintf("killed before byte %d of a file", most), dir, done)
		points["within"]++
	}
	return points
}

// TestKilledAtEveryEffect: an operation that a kill ends is there whole or not at all, and what it has acknowledged is
// there.
func TestKilledAtEveryEffect(t *testing.T) {
	points := map[string]int{}
	eachOperation(t, func(t *testing.T, f *folders, index int) {
		for effect, n := range killAll(t, f, index) {
			points[effect] += n
		}
	})
	sum := 0
	for _, n := range points {
		sum += n
	}
	t.Logf("%d points: %v", sum, points)
}
