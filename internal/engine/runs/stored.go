package runs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/train"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

// describe returns what is stored of a run, except the values of its state. A state that is seen to be damaged gives
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

// FallBack puts the state before in the place of a damaged one, which it keeps aside until the next state is stored,
// and returns it. If it is damaged, too, nothing changes. Nobody stores a state of the run meanwhile.
func FallBack(folder string) (*checkpoint.Run, error) {
	before, err := checkpoint.LoadRun(PreviousPath(folder))
	if err != nil {
		return nil, err
	}
	return before, atomicdir.Swap(StatePath(folder), PreviousPath(folder))
}

// isDamage reports whether err says that a stored state is not what was written. A disk that fails, a file of a newer
// program and the like are no damage.
func isDamage(err error) bool {
	var damage *atomicdir.DamageError
	var format *safetensors.FormatError
	return errors.As(err, &damage) || errors.As(err, &format) || errors.Is(err, fs.ErrNotExist)
}

// faultOf says in a sentence why a stored run cannot be read.
func faultOf(err error) string {
	var field *api.Error
	if errors.As(err, &field) {
		return field.Message
	}
	return err.Error()
}

// load reads the stored state of a run whose training is not open. One that is damaged gives way to the one before, and
// the run says so from then on.
func (r *Run) load() (*checkpoint.Run, error) {
	r.awaitStores()
	state, err := checkpoint.LoadRun(StatePath(r.folder))
	if err != nil && !isDamage(err) {
		return nil, err
	}
	if err != nil {
		before, none := FallBack(r.folder)
		if none != nil {
			r.files = api.Integrity{State: api.IsDamaged, Damage: faultOf(err)}
			return nil, err
		}
		r.warn(&r.status.Restored, r.runs.restored(r.name, err, before))
		r.storeStatus()
		state = before
	}
	r.files = catalog.ReadWhole(StatePath(r.folder))
	// Steps that were lost are lost with their rows.
	r.step, r.kimg, r.keeper.step, r.keeper.lost = state.Step, float64(state.Seen)/1000, state.Step, false
	r.rows, r.rowsRead = train.StoredRows(state.Rows), true
	return state, nil
}

// open makes the training ready to step, from its stored state.
func (r *Run) open(ctx context.Context) error {
	if r.training != nil && (r.training.Damage() == nil || r.ahead()) {
		return nil
	}
	r.closeTraining() // of images that may have been put right meanwhile
	state, err := r.load()
	if err != nil {
		return err
	}
	if r.training, err = r.runs.resume(ctx, state); err != nil {
		r.training = nil
		return err
	}
	r.rows = r.training.Rows(0)
	r.status.Memory, r.status.Parameters = memoryOf(r.training), r.training.ParamCount()
	return ctx.Err()
}

// resumed returns the training that goes on from a state.
func (s *Runs) resumed(ctx context.Context, state *checkpoint.Run) (training, error) {
	cfg, err := ReadConfig(state.Config)
	if err != nil {
		return nil, err
	}
	src := train.Sources{World: s.cfg.World}
	if src.Device, err = s.cfg.Device(); err != nil {
		return nil, err
	}
	if src.Dataset, err = s.cfg.Catalog.Dataset(cfg.Dataset); err != nil {
		return nil, err
	}
	if err := src.Dataset.Check(ctx); err != nil { // before a step holds the device
		return nil, err
	}
	return train.Resume(state, src)
}

// memoryOf says how a run's steps fit the device.
func memoryOf(t training) *api.RunMemory {
	m := t.Memory()
	return &api.RunMemory{
		Devices: m.Devices, Microbatch: m.Microbatch, NeededBytes: m.Needed, WholeBytes: m.Whole,
		AvailableBytes: m.Available,
	}
}

// closeTraining frees the device memory.
func (r *Run) closeTraining() {
	if t := r.training; t != nil {
		r.training = nil
		t.Close()
	}
}

// History makes sure that the rows of earlier servers are known.
func (r *Run) History(ctx context.Context) error {
	if err := r.readable(); err != nil || r.snapshot.Load().rowsRead {
		return err
	}
	return r.do(ctx, func() error {
		if r.rowsRead {
			return nil
		}
		_, err := r.load()
		return err
	})
}

// Model returns what the run has learned so far. A run that has ended is read from its stored state; one that could not
// be stored is still in memory.
func (r *Run) Model(ctx context.Context) (m *checkpoint.Model, err error) {
	if err := r.readable(); err != nil {
		return nil, err
	}
	err = r.do(ctx, func() error {
		if r.training == nil {
			m, err = r.storedModel()
			return err
		}
		if m, err = r.training.Model(ctx); err == nil {
			m.Schedule = r.learned(m.Schedule, r.training.Config())
		}
		return err
	})
	return m, err
}

func (r *Run) storedModel() (*checkpoint.Model, error) {
	state, err := r.load()
	if err != nil {
		return nil, err
	}
	if state.Network == nil {
		return nil, api.Errorf(api.BadRequest, "The run %q has no network of its own to save", r.name)
	}
	values := state.EMA
	if values == nil { // frozen: the network is as it was
		values = state.Params
	}
	learned, err := train.Published(state)
	if err != nil {
		return nil, err
	}
	return &checkpoint.Model{Net: state.Network, Values: values, Schedule: learned, Basis: state.Basis}, nil
}

// ReadConfig reads a training configuration strictly. If zero stands for a field's default, a zero that was sent is
// refused: it would silently become another number.
func ReadConfig(body json.RawMessage) (cfg train.Config, err error) {
	if err := api.DecodeStruct(body, &cfg); err != nil {
		return cfg, err
	}
	var sent map[string]json.RawMessage
	if err := json.Unmarshal(body, &sent); err != nil {
		return cfg, err
	}
	for _, name := range cfg.Unset() {
		if value, ok := sent[name]; ok && string(value) != "null" {
			return cfg, api.Errorf(api.BadRequest, "%s must be positive, got %s", name, value).
				WithHint("Leave it out for its default.")
		}
	}
	return cfg, nil
}
