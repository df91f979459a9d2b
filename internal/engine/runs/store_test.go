package runs

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
)

// Stores that nobody asks for take at most a twentieth of the time, and one that failed is tried again soon.
func TestKeeperInterval(t *testing.T) {
	for _, test := range []struct {
		cost   time.Duration
		failed int
		want   time.Duration
	}{
		{0, 0, time.Second},
		{20 * time.Millisecond, 0, time.Second},
		{3 * time.Second, 0, 57 * time.Second},
		{3 * time.Second, 1, 2 * time.Second},
		{0, 3, 8 * time.Second},
		{0, 1000, 30 * time.Second},
	} {
		k := keeper{cost: test.cost, failed: test.failed}
		got := k.interval(time.Second)
		if got != test.want {
			t.Errorf("a cost of %v after %d failures makes %v, want %v", test.cost, test.failed, got, test.want)
		}
		if share := float64(test.cost) / float64(test.cost+got); test.failed == 0 && share > 0.05 {
			t.Errorf("a cost of %v takes %.3f of the time", test.cost, share)
		}
	}
	if k := (&keeper{err: errors.New("/a/path")}); k.storeError() == "" || k.storeError() == "/a/path" {
		t.Errorf("an unknown error becomes %q", k.storeError())
	}
}

// A status is read back as it was written; with any bit of it changed, or cut anywhere, it is refused.
func TestStatusIsHashed(t *testing.T) {
	for _, s := range []status{
		{State: Created, Created: time.Unix(1, 2).UTC()},
		{State: Failed, Created: time.Unix(1, 2).UTC(), Target: 0.1, Error: "<\u2028\xff\"", Restored: "from 3"},
	} {
		text, err := s.encode()
		if err != nil {
			t.Fatal(err)
		}
		got, err := decodeStatus(text)
		if err != nil || got.State != s.State || got.Restored != s.Restored {
			t.Errorf("%s becomes %+v, %v", text, got, err)
		}
		for i := range 8 * len(text) {
			text[i/8] ^= 1 << (i % 8)
			if s, err := decodeStatus(text); err == nil {
				t.Errorf("%s is read as %+v", text, s)
			}
			text[i/8] ^= 1 << (i % 8)
		}
		for n := range text {
			if s, err := decodeStatus(text[:n]); err == nil {
				t.Errorf("%s is read as %+v", text[:n], s)
			}
		}
		plain, err := json.Marshal(&s)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := decodeStatus(plain); err == nil {
			t.Errorf("without its hash %s becomes %+v", plain, got)
		}
	}
}

// Whatever is decoded is a status that may be stored; the rest is an error, also with the hash that it should have.
func FuzzStatus(f *testing.F) {
	for _, text := range []string{
		``, `{}`, `null`, `{"state":"paused"}`, `{"state":"done","target_kimg":1,"step":3,"kimg":0.1,"config":{"a":[1]}}`,
		`{"state":"paused","state":"done"}`, `{"state":"running"}{}`, `{"state":"sleeping"}`, `[1]`, "{\"state\":\"pau\x00",
		`{"state":"done","sha256":"00"}`, `{"state":"done","sha256":"` + strings.Repeat("0", 64) + `"}`,
		`{"state":"created","created":"2026-01-02T03:04:05Z","memory":{"microbatch":1,"needed_bytes":2}}`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		plain := append(bytes.TrimSuffix(bytes.Clone(text), []byte("}")), '}')
		sealed := fmt.Appendf(plain[:len(plain)-1:len(plain)-1], "%s%x%s", hashHead, sha256.Sum256(plain), hashTail)
		for _, text := range [][]byte{text, sealed} {
			if s, err := decodeStatus(text); err == nil && s.State == "" {
				t.Errorf("%q has no state", text)
			}
		}
	})
}

// A request that goes on for long is stored on its way, and so is one that says nothing.
func TestStoresBesideASteppingClient(t *testing.T) {
	s, r := made(t, nil)
	release, err := r.beginStepping()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.trainStep(t.Context(), nil, nil, ignore, 1, -1); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return r.Info().StoredStep == 1 })
	if info := named(t, killed(t, s), "r").Info(); info.Step != 1 {
		t.Errorf("after a kill it is at step %d", info.Step)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}

// A run is trained on while its state is written, however long that takes.
func TestTrainingGoesOnWhileItIsStored(t *testing.T) {
	s, r := made(t, slowly)
	release, writing := make(chan struct{}), make(chan struct{})
	var once sync.Once
	t.Cleanup(atomicdir.Intercept(func(e atomicdir.Effect) error {
		if e.Name == "write" && strings.HasSuffix(e.Path, "state.safetensors") {
			once.Do(func() { close(writing) })
			<-release
		}
		return nil
	}))
	start(t, s, 1000)
	<-writing
	begun := r.Info().Step
	waitFor(t, func() bool { return r.Info().Step >= begun+3 })
	if stored := r.Info().StoredStep; stored != 0 {
		t.Errorf("step %d is said to be stored while it is being written", stored)
	}
	close(release)
	if _, err := s.Pause(t.Context(), api.RunName{Run: "r"}); err != nil || r.Info().StoredStep != r.Info().Step {
		t.Errorf("it is paused as %+v, %v", r.Info(), err)
	}
}

// A run that ends on a full disk is paused, not done, and cannot be paused or cancelled in peace; what it learned stays
// in memory; and once there is room it is stored, and done.
func TestFullDiskAtTheEndOfARun(t *testing.T) {
	s, r := made(t, nil)
	full := faultyDisk(t, s.root())
	start(t, s, 0.016)
	watch(t, r, 0)
	info := r.Info()
	if info.State != Paused || info.Step != 2 || info.StoredStep != 0 || info.StoreError != "The disk is full" ||
		!strings.Contains(info.Error, "The disk is full") {
		t.Errorf("on a full disk it is %+v", info)
	}
	_, err := s.Pause(t.Context(), api.RunName{Run: "r"})
	wantCode(t, "PauseRun", err, api.Storage)
	_, err = s.Cancel(t.Context(), api.RunName{Run: "r"})
	wantCode(t, "CancelRun", err, api.Storage)
	if state := r.Info().State; state != Paused {
		t.Errorf("a cancellation that could not be stored leaves it %s", state)
	}
	if m, _, err := r.Model(t.Context()); err != nil || m.Values[0][0] != 2 {
		t.Errorf("its model is that of step %v, %v", m, err)
	}
	full.Store(false)
	waitFor(t, func() bool { return r.Info().State == Done })
	if info := named(t, killed(t, s), "r").Info(); info.Step != 2 || info.State != Done || info.StoreError != "" {
		t.Errorf("with room again a kill leaves %+v", info)
	}
	start(t, s, 0.024)
	if steps := watch(t, r, 2); len(steps) != 1 || r.Info().State != Done {
		t.Errorf("it went on by %v to %+v", steps, r.Info())
	}
}

// A TrainStep, a new run and a run in place of another answer STORAGE on a full disk, and what was there stays.
func TestFullDiskIsStorage(t *testing.T) {
	s, r := made(t, nil)
	full := faultyDisk(t, s.root())
	for _, req := range []api.CreateRun{{Name: "s"}, {Name: "r", Replace: true}} {
		_, err := s.place(t.Context(), req, &fake{}, 0, nil)
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%s: %v", req.Name, err)
		}
	}
	err := trainStep(t.Context(), r, 2, ignore)
	wantCode(t, "TrainStep", err, api.Storage)
	if !strings.Contains(err.Error(), "in memory at step 2, and stored up to step 0") {
		t.Errorf("TrainStep says %v", err)
	}
	if left, err := os.ReadDir(s.root()); err != nil || len(left) != 1 || left[0].Name() != "r" {
		t.Errorf("there are %v, %v", left, err)
	}
	if err := s.Delete(t.Context(), api.RunName{Run: "r"}); err != nil { // which makes room
		t.Error(err)
	}
	full.Store(false)
}

// Training is not begun if the disk has no room for two states.
func TestNoRoomForTwoStates(t *testing.T) {
	s, r := made(t, nil)
	restore := atomicdir.Intercept(func(e atomicdir.Effect) error {
		if e.Name == "free" {
			return syscall.ENOSPC
		}
		return nil
	})
	stepping := trainStep(t.Context(), r, 1, ignore)
	_, starting := s.Start(t.Context(), api.StartRun{Run: "r"})
	restore()
	if !errors.Is(stepping, syscall.ENOSPC) || !errors.Is(starting, syscall.ENOSPC) || r.Info().Step != 0 {
		t.Errorf("TrainStep: %v, StartRun: %v", stepping, starting)
	}
}

// The state before the last is kept beside it, and a store of nothing new writes nothing.
func TestPreviousStateIsKept(t *testing.T) {
	s, r := made(t, nil)
	for range 2 {
		if err := trainStep(t.Context(), r, 1, ignore); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]int64{StatePath(r.folder): 2, PreviousPath(r.folder): 1} {
		if state, err := checkpoint.LoadRun(path); err != nil || state.Step != want {
			t.Errorf("%s is of step %v, %v", path, state, err)
		}
	}
	var effects atomic.Int64
	restore := atomicdir.Intercept(func(atomicdir.Effect) error { effects.Add(1); return nil })
	_, err := s.Pause(t.Context(), api.RunName{Run: "r"})
	err = errors.Join(err, s.Close(t.Context()))
	restore()
	if n := effects.Load(); n != 0 || err != nil {
		t.Errorf("a pause and an end without a step in between made %d effects on the disk, %v", n, err)
	}
}

// A run whose last state is damaged goes on from the one before and says so, also after a restart. Without one before
// it is broken, keeps its name, and can be deleted or replaced.
func TestDamagedState(t *testing.T) {
	s, r := made(t, nil)
	if err := errors.Join(trainStep(t.Context(), r, 1, ignore), trainStep(t.Context(), r, 1, ignore)); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(s.root())
	if err := errors.Join(s.Close(t.Context()), os.Remove(filepath.Join(StatePath(r.folder), "run.json"))); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s = open(t, dir, nil)
		r = named(t, s, "r")
		if info := r.Info(); info.Step != 1 || info.State != Paused || !strings.Contains(info.Restored, "of step 1") {
			t.Errorf("it goes on as %+v", info)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{StatePath(r.folder), PreviousPath(r.folder)} {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	s = open(t, dir, nil)
	r = named(t, s, "r")
	_, starting := s.Start(t.Context(), api.StartRun{Run: "r"})
	_, pausing := s.Pause(t.Context(), api.RunName{Run: "r"})
	_, _, saving := r.Model(t.Context())
	for what, err := range map[string]error{
		"StartRun": starting, "PauseRun": pausing, "SaveModel": saving, "WatchRun": r.history(t.Context()),
		"TrainStep": trainStep(t.Context(), r, 1, ignore),
	} {
		wantCode(t, what, err, api.Damaged)
	}
	wantCode(t, "CreateRun", s.free(api.CreateRun{Name: "r"}), api.NameTaken)
	if err := s.Delete(t.Context(), api.RunName{Run: "r"}); err != nil {
		t.Fatal(err)
	}
	create(t, s, nil)
	// So is one whose status cannot be read, which is not written over.
	const text = `{"state":"sleeping"}`
	err := errors.Join(s.Close(t.Context()), os.WriteFile(StatusPath(r.folder), []byte(text), 0o644))
	s = open(t, dir, nil)
	if info := named(t, s, "r").Info(); info.State != Broken || !strings.Contains(info.Error, "status.json") {
		t.Errorf("it is %+v", info)
	}
	_, starting = s.Start(t.Context(), api.StartRun{Run: "r"})
	wantCode(t, "StartRun", starting, api.Damaged)
	err = errors.Join(err, s.Close(t.Context()))
	if got, reading := os.ReadFile(StatusPath(r.folder)); errors.Join(err, reading) != nil || string(got) != text {
		t.Errorf("it has been written over by %q, %v, %v", got, err, reading)
	}
}
