package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/flight/client"
	"github.com/anisoflight/anisoflight/internal/cli/connect"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
	"github.com/anisoflight/anisoflight/train/data"
)

// beside has command lines, in this order, at least one for every command with a data folder. DIR is the folder, OUT
// another one.
var beside = []string{
	"model list", "schedule list", "basis list --json", "fsck", "model check DIR/models/bars",
	"schedule show --schedule edm",
	"schedule start --name begin --dataset bars --sigma-max 10",
	"schedule start --name begin --dataset bars --sigma-max 10 --replace",
	"model mixture --name law --dataset bars", "model draw --name drawn --model law --n 4",
	"schedule geodesic --name geo --model law --dataset bars --points 8 --samples 4 --knots 4",
	`few --name few --model law --dataset bars --nfe 3 --samples 64 --solvers ["ipndm"] --out OUT/few.json`,
	"sample --model law --n 2 --plan OUT/few.json --out OUT/few.png", "plan list", "plan delete --name few",
	`schedule predict --model law --dataset bars --points 8 --samples 4 --bases ["dct"]`,
	"basis make --name pairs --kind pca --dataset bars --k 2", "basis delete --name pairs",
	"sample --model bars --n 2 --steps 1 --out OUT/a.png",
	"train --name learned --stage isotropic --dataset bars --model bars --batch 8 --kimg 0.008 --knots 4 --init edm",
	"train --name learned --resume --kimg 0.016",
	"data convert OUT/bars.npz --name converted --data DIR --quiet --labels none",
}

// TestCommandsBesideAServer: commands change a folder with a server only through the server. Runs do not change,
// nothing that the server stores is removed, and everything that it acknowledges is there after it is killed.
func TestCommandsBesideAServer(t *testing.T) {
	dir, out := folder(t), t.TempDir()
	writeImages(t, filepath.Join(out, "bars.npz"))
	must(t, dir, "train", "--name", "bars", "--stage", "pretrain", "--dataset", "bars", "--network", tinyNetwork,
		"--batch", "8", "--kimg", "0.024")
	server, location := startProcess(t, dir)
	c := dial(t, location)
	for _, name := range []string{"created", "cancelled", "stepped"} {
		act(t, c, "CreateRun", fmt.Sprintf(`{"name":%q,"stage":"pretrain","dataset":"bars","batch":8,"network":%s}`, name,
			tinyNetwork))
	}
	act(t, c, "CancelRun", `{"run":"cancelled"}`)

	defer atomicdir.Intercept(func(f atomicdir.Effect) error {
		if strings.HasPrefix(f.Path, dir+string(filepath.Separator)) {
			t.Errorf("a command does %s on %s", f.Name, f.Path)
			return os.ErrPermission
		}
		return nil
	})()
	var steps atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	var storing sync.WaitGroup
	storing.Go(func() {
		for ctx.Err() == nil {
			storeOnce(t, c)
			steps.Add(1)
		}
	})
	places := strings.NewReplacer("DIR", dir, "OUT", out)
	for _, line := range beside {
		args := strings.Fields(places.Replace(line))
		if cmd, _, err := newRoot().Find(args); err == nil && cmd.Flags().Lookup("data") != nil {
			args = append(args, "--data", dir)
		}
		before := steps.Load()
		if status, _, stderr := call(t, args...); status != 0 {
			t.Errorf("%s: status %d\n%s", line, status, stderr)
		}
		waitFor(t, "a store beside "+line, func() bool { return steps.Load() > before || t.Failed() })
	}
	fails(t, 1, "in use", "fsck", "--repair", "--data", dir)
	_, _, _, err := client.ReadAll(c.Dataset(t.Context(), api.Dataset{Dataset: "converted"}))
	if err != nil {
		t.Errorf("Python did not convert for the server: %v", err)
	}
	stop()
	storing.Wait()
	want := states(t, c)
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = server.Wait()
	c = dial(t, startServer(t, dir).location)
	made := fmt.Sprintf(
		"cancelled is cancelled at 0, created is created at 0, learned is done at 2, stepped is paused at %d", steps.Load())
	if got := states(t, c); got != want || !strings.HasSuffix(got, made) {
		t.Errorf("after a kill the runs are\n%s, want\n%s, with %d steps", got, want, steps.Load())
	}
}

// startProcess starts a server as a process of its own.
func startProcess(t *testing.T, dir string) (server *exec.Cmd, location string) {
	t.Helper()
	server = exec.CommandContext(t.Context(), "anisoflight", "serve", "--listen", "127.0.0.1:0", "--data", dir, "--device",
		"go")
	var log lines
	server.Stdout, server.Stderr = &log, &log
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	return server, connect.LocationOf(log.await(t, "listening on "))
}

// writeImages writes three images as .npz.
func writeImages(t *testing.T, path string) {
	t.Helper()
	var file bytes.Buffer
	images := &data.Array{Shape: []int{3, 8, 8, 3}, Values: make([]uint8, 3*8*8*3)}
	err := data.WriteNPZ(&file, map[string]*data.Array{"images": images})
	if err == nil {
		err = os.WriteFile(path, file.Bytes(), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// act does an action that must succeed.
func act(t *testing.T, c *client.Client, op, body string) {
	t.Helper()
	if _, err := c.Action(t.Context(), op, json.RawMessage(body), nil); err != nil {
		t.Errorf("%s: %v", op, err)
	}
}

// states says of each run what it is, and how far.
func states(t *testing.T, c *client.Client) string {
	t.Helper()
	runs, err := c.ListRuns(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, r := range runs {
		words = append(words, fmt.Sprintf("%s is %s at %d", r.Name, r.State, r.Step))
	}
	return strings.Join(words, ", ")
}

// waitFor waits for a condition.
func waitFor(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within a minute", what)
		}
	}
}

// TestEveryCommandIsTriedBesideAServer: each command with a data folder has a line in beside, except serve. Commands
// that are Python modules (DisableFlagParsing) have one, too.
func TestEveryCommandIsTriedBesideAServer(t *testing.T) {
	tried := map[string]bool{"anisoflight serve": true}
	for _, line := range beside {
		if cmd, _, err := newRoot().Find(strings.Fields(line)); err == nil {
			tried[cmd.CommandPath()] = true
		}
	}
	var check func(*cobra.Command)
	check = func(cmd *cobra.Command) {
		knows := cmd.Flags().Lookup("data") != nil || cmd.DisableFlagParsing
		if cmd.Runnable() && knows && !tried[cmd.CommandPath()] {
			t.Errorf("%s knows a data folder; add a line to beside", cmd.CommandPath())
		}
		for _, sub := range cmd.Commands() {
			check(sub)
		}
	}
	check(newRoot())
}

// storeOnce has the server store one thing of each kind that is often stored: a step of a run, a model, a schedule.
func storeOnce(t *testing.T, c *client.Client) {
	t.Helper()
	for _, err := range c.Get(t.Context(), "TrainStep", map[string]any{"run": "stepped"}) {
		if err != nil {
			t.Error(err)
		}
	}
	act(t, c, "SaveModel", `{"run":"stepped","name":"stepped","replace":true}`)
	act(t, c, "MakeSchedule", `{"name":"again","kind":"log-linear","T":400,"replace":true}`)
}
