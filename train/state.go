package train

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"

	"github.com/anisoflight/anisoflight/internal/base/setting"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// State returns a copy of everything that the next step depends on, and the rows so far.
func (r *Run) State(ctx context.Context) (*checkpoint.Run, error) {
	t, err := r.optimiserState(ctx)
	if err != nil {
		return nil, err
	}
	s := &checkpoint.Run{
		RunHead: checkpoint.RunHead{
			Step: r.step, Seen: r.seen, Position: int64(r.position), Skipped: r.skipped, Images: int64(r.data.Len()),
			DatasetHash: r.data.Hash(), Updates: t.Count,
		},
		Network: r.net, Params: t.Params, M: t.M, V: t.V, EMA: t.EMA, Schedule: r.sched, Basis: r.scheduleBasis,
	}
	if r.familyBasis != r.scheduleBasis {
		s.Family = r.familyBasis
	}
	if s.Config, err = json.Marshal(r.cfg); err != nil {
		return nil, err
	}
	if r.adam != nil {
		s.ThetaM, s.ThetaV, s.ThetaUpdates = tableOf(r.adam.m), tableOf(r.adam.v), slices.Clone(r.adam.n)
		s.ThetaGradient = r.previous // never overwritten
		s.ThetaStart = tableOf(r.start.Theta())
	}
	if len(r.looks) > 0 {
		if s.Looks, err = json.Marshal(r.looks); err != nil {
			return nil, err
		}
		s.Best, s.BestEMA = r.best, r.bestValues
		if r.adam != nil {
			s.ThetaBest = tableOf(r.bestSchedule.Theta())
		}
	}
	for _, row := range r.rows {
		s.Rows = append(s.Rows, row.Values())
	}
	return s, nil
}

// optimiserState returns the state of the network's optimiser. Before the first step it is known without the device and
// takes no memory.
func (r *Run) optimiserState(ctx context.Context) (*kernels.TrainerState, error) {
	if r.initial == nil {
		return r.trainer.Export(ctx)
	}
	t := &kernels.TrainerState{Params: r.initial}
	if !*r.cfg.TrainNetwork {
		return t, nil
	}
	largest := 0
	for _, values := range r.initial {
		largest = max(largest, len(values))
	}
	zeros, zero := make([][]float32, len(r.initial)), make([]float32, largest)
	for i, values := range r.initial {
		zeros[i] = zero[:len(values)]
	}
	t.M, t.V, t.EMA = zeros, zeros, r.initial
	return t, nil
}

// StoredConfig reads the configuration of a stored state, which has every default filled in.
func StoredConfig(text []byte) (c Config, err error) {
	if err := json.Unmarshal(text, &c); err != nil {
		return c, stateError("configuration: %v", err)
	}
	full, err := c.Resolve()
	if err == nil && (!reflect.DeepEqual(full, c) || c.RatioEmbedding == nil || c.PStdSubspace == nil) {
		err = stateError("configuration: fields are missing; no release has written it")
	}
	return c, err
}

// Resume continues a run from a state, with the state's configuration. It uses the device and the data set of the
// sources. The next steps are those of a run that was never stopped.
func Resume(s *checkpoint.Run, src Sources) (*Run, error) {
	cfg, err := StoredConfig(s.Config)
	if err != nil {
		return nil, err
	}
	stored := cfg
	switch {
	case src.Dataset == nil:
	case int64(src.Dataset.Len()) != s.Images:
		return nil, setting.Errorf("dataset", "must have the %d images that the run was started with, got %d", s.Images,
			src.Dataset.Len())
	case src.Dataset.Hash() != s.DatasetHash:
		return nil, setting.Errorf("dataset", "must be the one that the run was started with: %q has other images or labels "+
			"now. Store that one again, or create a new run", cfg.Dataset)
	}
	cfg.Network, cfg.Model = nil, ""
	src.Model, src.Schedule, src.ScheduleBasis, src.Basis = nil, s.Schedule, s.Basis, s.Family
	if s.Family == nil {
		src.Basis = s.Basis
	}
	if s.Network != nil {
		if params := s.Network.Params(); len(s.Params) != len(params) {
			return nil, stateError("%d parameters, the network has %d", len(s.Params), len(params))
		}
		src.Model = &checkpoint.Model{Net: s.Network, Values: s.Params, Schedule: s.Schedule, Basis: s.Basis}
	}
	r, err := newRun(cfg, src, true)
	if err != nil {
		return nil, err
	}
	r.cfg = stored // with network and model, for the next state
	if err := r.restore(s); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// restore replaces the state of a run that has taken no step.
func (r *Run) restore(s *checkpoint.Run) (err error) {
	t := &kernels.TrainerState{Params: s.Params, M: s.M, V: s.V, EMA: s.EMA, Count: s.Updates}
	if err := r.trainer.Restore(t); err != nil {
		return stateError("%v", err)
	}
	r.initial = nil
	if r.adam != nil {
		if !sameTable(r.adam.m, s.ThetaM) || !sameTable(r.adam.v, s.ThetaV) || len(s.ThetaUpdates) != len(r.adam.n) {
			return stateError("the moments of θ do not fit the schedule")
		}
		r.adam.m, r.adam.v, r.adam.n = tableOf(s.ThetaM), tableOf(s.ThetaV), slices.Clone(s.ThetaUpdates)
		if s.ThetaGradient != nil && !sameTable(r.adam.m, s.ThetaGradient) {
			return stateError("the last gradient of θ does not fit the schedule")
		}
		r.previous = s.ThetaGradient
	}
	if r.keeper, r.start, err = keeperOf(s); err != nil {
		return err
	}
	if s.Step < 0 || s.Seen < 0 || s.Position < 0 || s.Skipped < 0 {
		return stateError("a counter is negative")
	}
	r.step, r.seen, r.position, r.skipped = s.Step, s.Seen, uint64(s.Position), s.Skipped
	for _, v := range s.Rows {
		row, err := rowOf(v)
		if err != nil {
			return err
		}
		r.rows = append(r.rows, row)
		_ = r.guard.check(row, !setting.Finite(row.Loss))
	}
	return nil
}

// storedSchedule returns the schedule with the parameters table in place of those of s; nil if the schedule is not
// trained. The table must have the shape of moments.
func storedSchedule(table [][][]float64, s *schedule.Schedule, moments [][][]float64) (*schedule.Schedule, error) {
	if moments == nil {
		return nil, nil
	}
	if !sameTable(moments, table) {
		return nil, stateError("a stored θ does not fit the schedule")
	}
	theta := s.Theta()
	for row, paths := range table {
		for j, path := range paths {
			copy(theta[row][j], path)
		}
	}
	s, err := schedule.FromTheta(s.Family(), s.Labels(), theta, s.T(), s.At(0, 0).G0())
	if err != nil {
		return nil, stateError("a stored θ: %v", err)
	}
	return s, nil
}
