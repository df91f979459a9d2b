package runs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/train"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/checkpoint/atomicdir"
	"github.com/anisoflight/anisoflight/train/checkpoint/safetensors"
)

// read reads what is stored of a run, except the values of its state.
func (r *Run) read() (err error) {
	if r.status, err = readStatus(r.folder); err != nil {
		return err
	}
	if r.keeper.status, err = r.status.encode(); err != nil {
		return err
	}
	state, err := checkpoint.DescribeRun(StatePath(r.folder))
	if err != nil {
		if state, err = r.fallBack(err); err != nil {
			return err
		}
	}
	r.config, r.files = state.Config, api.Integrity{State: api.Intact}
	r.step, r.kimg, r.keeper.step = state.Step, float64(state.Seen)/1000, state.Step
	if r.cfg, err = ReadConfig(state.Config); err == nil {
		_, err = train.StoredConfig(state.Config)
	}
	return err
}

// load reads the stored state of a run whose training is not open.
func (r *Run) load() (*checkpoint.Run, error) {
	r.awaitStore()
	state, err := checkpoint.LoadRun(StatePath(r.folder))
	if err != nil {
		damage := err
		if state, err = r.fallBack(damage); err != nil {
			if isDamage(damage) {
				r.files = api.Integrity{State: api.IsDamaged, Damage: faultOf(damage)}
			}
			return nil, err
		}
		_ = r.store() // of the status; a failure is tried again
	}
	r.files = api.Integrity{State: api.Intact}
	// Steps that were lost are lost with their rows.
	r.step, r.kimg, r.keeper.step, r.keeper.lost = state.Step, float64(state.Seen)/1000, state.Step, false
	r.rows, r.rowsRead = train.StoredRows(state.Rows), true
	return state, nil
}

// fallBack returns the state before in the place of one that cannot be read because of its damage, and says so in the
// status. If there is none it returns the damage.
func (r *Run) fallBack(damage error) (*checkpoint.Run, error) {
	if !isDamage(damage) {
		return nil, damage
	}
	before, err := FallBack(r.folder)
	if err != nil {
		return nil, damage
	}
	r.runs.log.Error("the last state of a run is damaged; it goes on from the one before", "run", r.name,
		"error", damage, "step", before.Step)
	r.status.Restored = fmt.Sprintf(
		"The last stored state was damaged (%s); the run goes on from the one before it, of step %d", faultOf(damage),
		before.Step)
	return before, nil
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
	_, damage := errors.AsType[*atomicdir.DamageError](err)
	_, format := errors.AsType[*safetensors.FormatError](err)
	return damage || format || errors.Is(err, fs.ErrNotExist)
}

// faultOf says in a sentence why a stored run cannot be read.
func faultOf(err error) string {
	if field, ok := errors.AsType[*api.Error](err); ok {
		return field.Message
	}
	return err.Error()
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
	if o := r.training.Outcome(); o != nil {
		r.looks, r.keeper.looks = o.Looks, o.Looks
	}
	r.status.Memory, r.status.Parameters = memoryOf(r.training), r.training.ParamCount()
	return ctx.Err()
}

// resumed returns the training that goes on from a state.
func (s *Runs) resumed(ctx context.Context, state *checkpoint.Run) (training, error) {
	cfg, err := ReadConfig(state.Config)
	if err != nil {
		return nil, err
	}
	src, err := s.images(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return train.Resume(state, src)
}

func memoryOf(t training) *api.RunMemory {
	m := t.Memory()
	return &api.RunMemory{
		Devices: m.Devices, Microbatch: m.Microbatch, NeededBytes: m.Needed, WholeBytes: m.Whole,
		AvailableBytes: m.Available,
	}
}

func (r *Run) closeTraining() {
	if t := r.training; t != nil {
		r.training = nil
		t.Close()
	}
}

// history makes sure that the rows of earlier servers are known.
func (r *Run) history(ctx context.Context) error {
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
		var best *train.Outcome
		if r.training == nil {
			m, best, err = r.storedModel()
		} else if m, err = r.training.Model(ctx); err == nil {
			best = r.training.Outcome()
		}
		if err == nil && (best != nil || r.training != nil) { // what was stored last says already where it came from
			m.Schedule = r.learned(m.Schedule, best)
		}
		return err
	})
	return m, err
}

func (r *Run) storedModel() (*checkpoint.Model, *train.Outcome, error) {
	state, err := r.load()
	if err != nil {
		return nil, nil, err
	}
	if state.Network == nil {
		return nil, nil, api.Errorf(api.BadRequest, "The run %q has no network of its own to save", r.name)
	}
	return train.StoredModel(state)
}

// ReadConfig reads a training configuration strictly. If zero stands for a field's default, a zero that was sent is
// refused: it would silently become another number.
func ReadConfig(body []byte) (cfg train.Config, err error) {
	if err := api.DecodeStruct(body, &cfg); err != nil {
		return cfg, err
	}
	var sent map[string]json.RawMessage
	if err := json.Unmarshal(body, &sent); err != nil {
		return cfg, err
	}
	for _, f := range api.Fields(cfg) {
		var number float64
		value, ok := sent[f.Name]
		least := cmp.Or(f.Tag.Get("min"), f.Tag.Get("given"), "0")
		if ok = ok && (f.Tag.Get("above") != "" || least != "0"); ok && string(value) != "null" &&
			json.Unmarshal(value, &number) == nil && number == 0 {
			return cfg, api.Errorf(api.BadRequest, "%s must be positive, got %s", f.Name, value).
				WithHint("Leave it out for its default.")
		}
	}
	return cfg, nil
}
