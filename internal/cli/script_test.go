package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/anisoflight/anisoflight/internal/testing/certtest"
	"github.com/anisoflight/anisoflight/train/data"
)

// tinyNetwork is the smallest network that is conditional on three classes, tinyTraining three steps of it.
const (
	tinyNetwork = `{"img_resolution":8,"img_channels":1,"label_dim":3,"model_channels":8,"channel_mult":[1],` +
		`"num_blocks":1,"attn_resolutions":[],"dropout":0}`
	tinyTraining = "stage: pretrain\ndataset: bars\nbatch: 8\nkimg: 0.024\nnetwork: " + tinyNetwork + "\n"
)

// TestMain makes the program a command of the scripts, and of tests that start it as a process.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"anisoflight": func() { os.Exit(Main(os.Args[1:], os.Stdout, os.Stderr)) },
	})
}

// TestScripts runs the scripts of testdata/script. Each shows a subject that a user knows. The folder of a script has
// tiny.yaml, the configuration of a short training, and the data set data/datasets/bars. $CERTS has the certificates of
// a server and of a client. The device is the pure-Go one, which compiles nothing. Two commands are added:
//
//	await FILE PATTERN       waits until a file matches
//	status N PROGRAM [ARG…]  runs a program that must end with status N
func TestScripts(t *testing.T) {
	certs := t.TempDir()
	for _, name := range []string{"server", "client"} {
		dir := filepath.Join(certs, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		certtest.Files(t, dir)
	}
	venv, err := filepath.Abs("../../.venv") // with the Python package and XLA's plugin
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("CERTS", certs)
			e.Setenv("VIRTUAL_ENV", venv)
			e.Setenv("ANISOFLIGHT_PYTHON", filepath.Join(venv, "bin/python"))
			e.Setenv("ANISOFLIGHT_DEVICE", "go")
			for _, name := range []string{"ANISOFLIGHT_PROGRAM_CACHE", "PYTHONPATH", "XLA_FLAGS"} {
				e.Setenv(name, os.Getenv(name))
			}
			writeBars(t, filepath.Join(e.WorkDir, "data"))
			return os.WriteFile(filepath.Join(e.WorkDir, "tiny.yaml"), []byte(tinyTraining), 0o600)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"await": await, "status": status},
	})
}

func await(ts *testscript.TestScript, _ bool, args []string) {
	file, pattern := ts.MkAbs(args[0]), regexp.MustCompile(args[1])
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		text, err := os.ReadFile(file)
		if pattern.Match(text) {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("%s does not match %s within a minute: %q, %v", file, pattern, text, err)
		}
	}
}

func status(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("status %d, want %d", got, want)
	}
}

// writeBars writes the data set "bars" into a data folder: images 8×8 of one of three bars.
func writeBars(t *testing.T, dir string) {
	t.Helper()
	const n = 48
	images, labels := make([]uint8, n*64), make([]int32, n)
	for i := range n {
		labels[i] = int32(i % 3)
		for y := range 8 {
			images[i*64+y*8+2*(i%3)+i%2] = 255
		}
	}
	writeDataset(t, dir, "bars", images, labels)
}

// writeDataset writes a data set of images [n, 8, 8, 1] with labels into a data folder.
func writeDataset(t *testing.T, dir, name string, images []uint8, labels []int32) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "datasets"), 0o755); err != nil {
		t.Fatal(err)
	}
	form := data.Form{Height: 8, Width: 8, Channels: 1, Labels: true}
	w, err := data.Create(filepath.Join(dir, "datasets", name), form, len(labels))
	if err == nil {
		err = errors.Join(w.Uint8(images, labels), w.Commit(false))
	}
	if err != nil {
		t.Fatal(err)
	}
}
