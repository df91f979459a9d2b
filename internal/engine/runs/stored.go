package runs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/anisoflight/anisoflight/base/safely"
	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/train"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
)

// folderBytes returns the bytes of the files in a folder, as far as there are any.
func folderBytes(path string) (n int64) {
	_ = filepath.WalkDir(path, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil
		}
		if info, err := entry.Info(); err == nil {
			n += info.Size()
		}
		return nil
	})
	return n
}

// describe returns what is stored of a run, but for the values of its state. A state that is seen to be damaged gives
// way to the one before.
func (s *Runs) describe(name, folder string) (
	st status, state *checkpoint.Run, cfg train.Config, fell bool, err error,
) {
	if st, _, err = readStatus(StatusPath(folder)); err != nil {
		return st, nil, cfg, false, err
	}
	if state, err = checkpoint.DescribeRun(StatePath(folder)); isDamage(err) {
		before, none := FallBack(folder)
		if none != nil {
			return st, nil, cfg, false, err
		}
		st.Restored, state, fell = s.restored(name, err, before), before, true
		if err := writeStatus(folder, &st); err != nil {
			s.log.Error("status of a run is not stored", "run", name, "error", err)
		}
	} else if err != nil {
		return st, nil, cfg, false, err
	}
	cfg, err = ReadConfig(state.Config)
	return st, state, cfg, fell, err
}

// restored logs and says that a run goes on from the state before its last, which is damaged.
func (s *Runs) restored(name string, damage error, before *checkpoint.Run) string {
	s.log.Error("the last state of a run is damaged; it goes on from the one before", "run", name, "error", damage,
		"step", before.Step)
	return fmt.Sprintf("The last stored state was damaged (%s); the run goes on from the one before it, of step %d",
		faultOf(damage), before.Step)
}

// load reads the stored state. One that is damaged gives way to the one before, and the run says so from then on. The
// caller owns the training, which is not open.
func (r *Run) load() (*checkpoint.Run, error) {
	state, err := checkpoint.LoadRun(StatePath(r.folder))
	if err == nil {
		files := catalog.ReadWhole(StatePath(r.folder))
		r.update(func() { r.files = files })
		return state, nil
	}
	if !isDamage(err) {
		return nil, err
	}
	select { // nothing of it is being stored
	case <-r.keeper.turn:
		defer give(r.keeper.turn)
	default:
		return nil, err
	}
	before, none := FallBack(r.folder)
	if none != nil {
		r.update(func() { r.files = api.Integrity{State: api.IsDamaged, Damage: faultOf(err)} })
		return nil, err
	}
	r.update(func() {
		r.status.Restored = r.of.restored(r.name, err, before)
		r.note, r.files = r.status.Restored, catalog.ReadWhole(StatePath(r.folder))
		r.step, r.kimg, r.keeper.step = before.Step, float64(before.Seen)/1000, before.Step
		r.rows, r.read, r.keeper.lost = wholeRows(before.Rows), true, false
	})
	if err := r.storeStatus(); err != nil {
		r.of.log.Error("status of a run is not stored; it is tried again", "run", r.name, "error", err)
	}
	return before, nil
}

// open makes the training ready to step, from its stored state. The caller owns it.
func (r *Run) open(ctx context.Context) error {
	if r.train != nil && (r.train.Damage() == nil || r.stepped()) {
		return nil
	}
	r.closeTraining() // of images that may have been put right meanwhile
	state, err := r.load()
	if err != nil {
		return err
	}
	cfg, err := ReadConfig(state.Config)
	if err != nil {
		return err
	}
	src := train.Sources{World: r.of.cfg.World}
	if src.Device, err = r.of.cfg.Device(); err != nil {
		return err
	}
	if src.Dataset, err = r.of.cfg.Catalog.Dataset(cfg.Dataset); err != nil {
		return err
	}
	if err := src.Dataset.Check(ctx); err != nil { // before a step holds the device
		return err
	}
	if r.train, err = train.Resume(state, src); err != nil {
		return err
	}
	r.remember(state)
	r.update(func() {
		r.status.Memory, r.status.Parameters = memoryOf(r.train), r.train.ParamCount()
		if r.keeper.lost { // the steps since then are lost, too
			r.step, r.kimg, r.rows, r.keeper.lost = state.Step, float64(state.Seen)/1000, wholeRows(state.Rows), false
		}
	})
	return ctx.Err()
}

// memoryOf says how a run's steps fit the device.
func memoryOf(t *train.Run) *api.RunMemory {
	m := t.Memory()
	return &api.RunMemory{
		Devices: m.Devices, Microbatch: m.Microbatch, NeededBytes: m.Needed, WholeBytes: m.Whole,
		AvailableBytes: m.Available,
	}
}

// remember takes over the rows of a stored state.
func (r *Run) remember(state *checkpoint.Run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.read {
		r.rows, r.read = wholeRows(state.Rows), true
	}
}

// wholeRows completes rows that an older program has stored with the columns that it did not have.
func wholeRows(stored [][]float64) [][]float64 {
	var rows [][]float64
	for _, values := range stored {
		if row, err := train.RowOf(values); err == nil { // one that is no row stops the run's resumption, not its reading
			rows = append(rows, row.Values())
		}
	}
	return rows
}

// History makes sure that the rows of earlier servers are known.
func (r *Run) History(ctx context.Context) error {
	if err := r.whole(); err != nil {
		return err
	}
	r.mu.Lock()
	read := r.read
	r.mu.Unlock()
	if read {
		return nil
	}
	if err := r.acquire(ctx); err != nil {
		return err
	}
	defer r.disown()
	state, err := r.load()
	if err == nil {
		r.remember(state)
	}
	return err
}

// whole refuses a run of which nothing can be read.
func (r *Run) whole() error {
	info := r.Info()
	if info.State != Broken {
		return nil
	}
	return api.Errorf(api.Damaged, "The run %q is broken: %s", r.name, info.Error).
		WithHint("End the server and put the state before in its place by anisoflight fsck --repair, or delete the run.")
}

// closeTraining frees the device memory. The caller owns the training.
func (r *Run) closeTraining() {
	if t := r.train; t != nil {
		r.train = nil
		t.Close()
	}
}

// distrust forgets the training after a panic in a step: what the step had done is not to be stored. The run goes on,
// if it does, from its stored state. The caller owns the training.
func (r *Run) distrust() {
	r.mu.Lock()
	r.keeper.lost = true
	r.mu.Unlock()
	_ = safely.Do(func() error {
		r.closeTraining()
		return nil
	})
}

// freeBytes returns what may still be written to the disk of a folder.
func freeBytes(folder string) (int64, error) { return atomicdir.Free(folder) }

// faultOf says in a sentence why a stored run cannot be read.
func faultOf(err error) string {
	var field *api.Error
	if errors.As(err, &field) {
		return field.Message
	}
	return err.Error()
}
