package runs

import (
	"cmp"
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
	if r.cfg, err = readConfig(state.Config); err == nil {
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
				r.files = api.Integrity{State: api.IsDamaged, Damage: catalog.FaultOf(damage)}
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

// fallBack replaces a damaged state by the previous one, records that in the status, and returns the previous one. If
// it cannot, it returns the damage.
func (r *Run) fallBack(damage error) (*checkpoint.Run, error) {
	if !isDamage(damage) {
		return nil, damage
	}
	previous, err := FallBack(r.folder)
	if err != nil {
		return nil, damage
	}
	r.runs.log.Error("the last state of a run is damaged; it goes on from the one before", "run", r.name,
		"error", damage, "step", previous.Step)
	r.status.Restored = fmt.Sprintf(
		"The last stored state was damaged (%s); the run goes on from the one before it, of step %d", catalog.FaultOf(damage),
		previous.Step)
	return previous, nil
}

// FallBack swaps a damaged state and the previous one, and returns the latter. The damaged one is there until the next
// store. If both are damaged, nothing changes. The caller makes sure that no state is stored meanwhile.
func FallBack(folder string) (*checkpoint.Run, error) {
	previous, err := checkpoint.LoadRun(PreviousPath(folder))
	if err != nil {
		return nil, err
	}
	return previous, atomicdir.Swap(StatePath(folder), PreviousPath(folder))
}

// isDamage reports whether err says that a stored state is not what was written. A failing disk or a file of a newer
// program is no damage.
func isDamage(err error) bool {
	_, damage := errors.AsType[*atomicdir.DamageError](err)
	_, format := errors.AsType[*safetensors.FormatError](err)
	return damage || format || errors.Is(err, fs.ErrNotExist)
}

// open opens the training from its stored state, if it is not open.
func (r *Run) open(ctx context.Context) error {
	if r.training != nil && (r.training.Damage() == nil || r.ahead()) {
		return nil
	}
	r.closeTraining() // its images may have been repaired meanwhile
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
	cfg, err := readConfig(state.Config)
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

// history reads the rows of earlier servers if they are not known.
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

// Model returns what the run has learned so far, from memory if the training is open, and else from the stored state,
// and the outcome if the run keeps its best state.
func (r *Run) Model(ctx context.Context) (m *checkpoint.Model, best *train.Outcome, err error) {
	if err := r.readable(); err != nil {
		return nil, nil, err
	}
	err = r.do(ctx, func() error {
		if r.training == nil {
			m, best, err = r.storedModel()
		} else if m, err = r.training.Model(ctx); err == nil {
			best = r.training.Outcome()
		}
		if err == nil && (best != nil || r.training != nil) { // a stored schedule has its provenance already
			m.Schedule = r.withProvenance(m.Schedule, best)
		}
		return err
	})
	return m, best, err
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

// readConfig decodes a training configuration strictly. If a field's default has the value zero, a zero that was sent
// is refused: it would silently become the default.
func readConfig(body []byte) (cfg train.Config, err error) {
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
