package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anisoflight/anisoflight/internal/testing/npytest"
	"github.com/anisoflight/anisoflight/train/data"
)

// The smallest network that is conditional on three classes.
const tinyNetwork = `{"img_resolution":8,"img_channels":1,"label_dim":3,"model_channels":8,"channel_mult":[1],` +
	`"num_blocks":1,"attn_resolutions":[],"dropout":0}`

// folder makes a data folder with the data set "bars": images 8×8 of one of three bars.
func folder(t *testing.T) string {
	t.Helper()
	const n = 48
	images := data.Images{
		Height: 8, Width: 8, Channels: 1, Layout: data.HWC, Uint8: make([]uint8, n*64),
		Labels: make([]int32, n),
	}
	for i := range n {
		images.Labels[i] = int32(i % 3)
		for y := range 8 {
			images.Uint8[i*64+y*8+2*(i%3)+i%2] = 255
		}
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "datasets"), 0o755); err != nil {
		t.Fatal(err)
	}
	form := data.Form{Height: 8, Width: 8, Channels: 1, Labels: true}
	w, err := data.Create(filepath.Join(dir, "datasets", "bars"), form, n)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(w.Uint8(images.Uint8, images.Labels), w.Commit(false)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// must runs a command line that must succeed, on the pure-Go backend, which
// compiles nothing, and returns its output.
func must(t *testing.T, dir string, args ...string) string {
	t.Helper()
	status, stdout, stderr := call(t, append(args, "--data", dir, "--device", "go")...)
	if status != 0 {
		t.Fatalf("anisoflight %s: status %d\n%s", strings.Join(args, " "), status, stderr)
	}
	return stdout
}

func pretrain(t *testing.T, dir, name string, more ...string) string {
	t.Helper()
	return must(t, dir, append([]string{
		"train", "--name", name, "--stage", "pretrain", "--dataset", "bars", "--network",
		tinyNetwork, "--batch", "8", "--kimg", "0.024",
	}, more...)...)
}

// From a data set to pictures, as the README walks through it.
func TestWalkThrough(t *testing.T) {
	dir, out := folder(t), t.TempDir()
	if got := pretrain(t, dir, "bars"); !strings.Contains(got,
		"run bars: done after step 3, 0.024 kimg; saved as model bars") {
		t.Errorf("pretrain says %q", got)
	}
	file := configFile(t,
		"name: learned\nstage: isotropic\ndataset: bars\nmodel: bars\ntrain_network: false\nbatch: 8\nkimg: 0.016\nT: "+
			"400\nknots: 8\ninit: edm\n")
	if got := must(t, dir, "train", "--config", file); !strings.Contains(got, "done after step 2") {
		t.Errorf("isotropic says %q", got)
	}
	if got := must(t, dir, "train", "--config", file, "--resume", "--kimg", "0.032"); !strings.Contains(got,
		"done after step 4") {
		t.Errorf("resumed run says %q", got)
	}

	picture := filepath.Join(out, "bars.png")
	if got := must(t, dir, "sample", "--model", "learned", "--labels", "0-2", "--steps", "2", "--out",
		picture); !strings.Contains(got, "3 images of 8×8×1, 4 evaluations each") {
		t.Errorf("sample says %q", got)
	}
	if info, err := os.Stat(picture); err != nil || info.Size() == 0 {
		t.Errorf("no picture: %v", err)
	}
	arrays := filepath.Join(out, "bars.npz")
	for want, args := range map[string][]string{
		"take 2 evaluations; second_point endpoint takes 3": {"--nfe", "3"},
		"take 3 evaluations; ask for 3, or give steps":      {"--nfe", "4", "--second-point", "endpoint"},
	} {
		args = append([]string{"sample", "--model", "learned", "--n", "1", "--out", picture}, args...)
		status, _, notes := call(t, append(args, "--data", dir, "--device", "go")...)
		if status != 0 || !strings.Contains(notes, want) {
			t.Errorf("status %d, %q does not warn of %s", status, notes, want)
		}
	}
	must(t, dir, "sample", "--model", "learned", "--n", "5", "--seed", "7", "--nfe", "3", "--second-point", "endpoint",
		"--out", arrays)
	if seeds := npytest.ReadNPZ(t, arrays)["seeds"].Values.([]uint64); len(seeds) != 5 || seeds[0] != 7 || seeds[4] != 11 {
		t.Errorf("seeds are %v, want 7 … 11", seeds)
	}

	must(t, dir, "schedule", "geodesic", "--name", "geo", "--model", "learned", "--dataset", "bars", "--points", "8",
		"--samples", "4", "--knots", "4")
	list := must(t, dir, "schedule", "list")
	for _, name := range []string{"geo", "learned"} {
		if !strings.Contains(list, name) {
			t.Errorf("list lacks %s:\n%s", name, list)
		}
	}
	if table := must(t, dir, "schedule", "show", "--schedule", "geo", "--points", "5"); !strings.Contains(table,
		`"kind": "geodesic"`) || !strings.Contains(table, `"name": "bars"`) || strings.Count(table, "\nall ") != 5 {
		t.Errorf("show says\n%s", table)
	}
	if shown := must(t, dir, "schedule", "show", "--schedule", "learned"); !strings.Contains(shown,
		`"stage": "isotropic"`) || !strings.Contains(shown, `"steps": 4`) {
		t.Errorf("show says\n%s", shown)
	}
}

// Ctrl-C ends a training cleanly: the model is saved and the run can go on.
func TestInterruptedTrainingIsKept(t *testing.T) {
	dir := folder(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() { // interrupt once steps have been taken
		for ctx.Err() == nil {
			if raw, err := os.ReadFile(filepath.Join(dir, "runs", "long", "status.json")); err == nil &&
				strings.Contains(string(raw), `"running"`) {
				time.Sleep(300 * time.Millisecond)
				cancel()
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	var stdout, stderr bytes.Buffer
	status := run(ctx, []string{
		"train", "--name", "long", "--stage", "pretrain", "--dataset", "bars", "--network",
		tinyNetwork, "--batch", "8", "--kimg", "1000", "--data", dir, "--device", "go",
	}, &stdout, &stderr)
	if status != 130 || !strings.Contains(stdout.String(), "run long: paused after step") ||
		!strings.Contains(stdout.String(), "--resume") {
		t.Fatalf("status %d, output %q, errors %q", status, stdout.String(), stderr.String())
	}
	must(t, dir, "sample", "--model", "long", "--n", "1", "--steps", "1", "--out", filepath.Join(t.TempDir(), "a.png"))
	var step int
	if _, err := fmt.Sscanf(stdout.String(), "run long: paused after step %d,", &step); err != nil || step == 0 {
		t.Fatalf("%q: step %d, %v", stdout.String(), step, err)
	}
	more := fmt.Sprintf("done after step %d", step+2)
	if got := must(t, dir, "train", "--name", "long", "--resume", "--kimg",
		fmt.Sprint(0.008*float64(step+2))); !strings.Contains(got, more) {
		t.Errorf("resumed run says %q, want %q", got, more)
	}
}

func TestCommandErrors(t *testing.T) {
	dir := folder(t)
	pretrain(t, dir, "taken")
	train := func(args ...string) []string { return append([]string{"train", "--stage", "pretrain"}, args...) }
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"no such field": {
			train("--name", "x", "--dataset", "bars", "--network", `{"img_size":8}`), "img_size",
		},
		"no such images": {
			[]string{"schedule", "start", "--name", "s", "--dataset", "nothing"}, "nothing",
		},
		"too few evaluations": {
			[]string{"sample", "--model", "taken", "--solver", "heun", "--nfe", "1"},
			"nfe must be at least 2",
		},
		"model name taken": {train("--name", "y", "--save", "taken", "--dataset", "bars"), "--replace"},
		"run name taken": {
			train("--name", "taken", "--save", "z", "--dataset", "bars", "--network", tinyNetwork), "taken",
		},
		"no MPI":               {[]string{"train", "--name", "x", "--processes", "nowhere.so"}, "pip install mpich"},
		"no such devices":      {[]string{"doctor", "--devices", "none"}, `devices must be all`},
		"unusable plugin":      {[]string{"doctor", "--device", "nowhere.so"}, "no such file"},
		"address in use twice": {[]string{"serve", "--listen", "256.0.0.1:1"}, "cannot listen"},
	} {
		t.Run(name, func(t *testing.T) {
			args := append(c.args, "--log-level", "error")
			if args[0] != "doctor" {
				args = append(args, "--data", dir, "--device", "go")
			}
			status, _, stderr := call(t, args...)
			if status != 1 || !strings.Contains(stderr, c.says) || strings.Contains(stderr, "[") {
				t.Errorf("status %d, error %q; want status 1 and a plain error with %q", status, stderr, c.says)
			}
		})
	}
}

// TestModelCheck: a sound model, and one whose configuration asks for another network.
func TestModelCheck(t *testing.T) {
	dir := folder(t)
	pretrain(t, dir, "sound")
	path := filepath.Join(dir, "models", "sound")
	status, stdout, stderr := call(t, "model", "check", path)
	if status != 0 || !strings.Contains(stdout, "every tensor fits") {
		t.Errorf("status %d, %q, %q", status, stdout, stderr)
	}
	if err := os.WriteFile(filepath.Join(path, "config.json"),
		[]byte(strings.Replace(tinyNetwork, `"num_blocks":1`, `"num_blocks":2`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(path, "manifest.json")); err != nil { // which would find the change of config.json
		t.Fatal(err)
	}
	status, stdout, stderr = call(t, "model", "check", "--json", path)
	var report modelReport
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatal(err)
	}
	missing := modelFault{
		"model.safetensors", "model.enc.8x8_block1.norm0.weight",
		"is missing; config.json asks for it with shape [8]",
	}
	if status != 1 || report.Faults[0] != missing || !strings.Contains(stderr, "cannot be served") {
		t.Errorf("status %d, faults %v, %q", status, report.Faults, stderr)
	}
	fails(t, 2, "FOLDER is missing", "model", "check")
}

func TestDoctor(t *testing.T) {
	status, stdout, stderr := call(t, "doctor", "--devices", "3", "--device", "cpu", "--json")
	var d diagnosis
	if err := json.Unmarshal([]byte(stdout), &d); err != nil || status != 0 {
		t.Fatalf("status %d, %v\n%s", status, err, stderr)
	}
	if !d.OK || len(d.Checks) != 6 || d.Rewritten == 0 || d.Device.Name != "xla:cpu" || d.Device.Used != 3 ||
		len(d.Device.Devices) != 3 || len(d.Memory) != 3 || d.Memory[2] <= 0 {
		t.Errorf("diagnosis %+v", d)
	}
	if d.Rate == nil || d.Rate.Bare <= 0 || d.Rate.Served <= 0 {
		t.Errorf("rate %+v", d.Rate)
	}
	if _, stdout, _ = call(t, "doctor", "--device", "go"); !strings.Contains(stdout, "second derivative  ok") {
		t.Errorf("doctor says\n%s", stdout)
	}
}

func TestVersion(t *testing.T) {
	status, stdout, _ := call(t, "version")
	if status != 0 || !strings.HasPrefix(stdout, "anisoflight ") {
		t.Errorf("status %d, output %q", status, stdout)
	}
	if status, flag, _ := call(t, "--version"); status != 0 || flag != stdout {
		t.Errorf("--version: status %d, output %q, want %q", status, flag, stdout)
	}
}

// lines is a log that can be read while it is written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// await waits for a line and returns the word after the marker.
func (l *lines) await(t *testing.T, marker string) string {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if _, rest, found := strings.Cut(l.String(), marker); found && strings.ContainsAny(rest, "\" \n") {
			return rest[:strings.IndexAny(rest, "\" \n")]
		}
	}
	t.Fatalf("no line with %q:\n%s", marker, l)
	return ""
}
