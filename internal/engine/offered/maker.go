package offered

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/runs"
	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train"
	"github.com/anisoflight/anisoflight/train/passes"
)

// storeEvery is how long steps are in memory alone.
const storeEvery = 15 * time.Second

func (s *session) result() map[string]any {
	if s.few != nil {
		return s.few.result()
	}
	out := map[string]any{"complete": s.complete}
	if s.info != nil {
		out["schedule"] = s.info
	}
	if s.steps > 0 {
		out["steps"] = s.steps
	}
	if s.stopped != "" {
		out["stopped"] = s.stopped
	}
	if s.learner != nil {
		cfg := s.learner.Config()
		if notes := append(cfg.Warnings(s.learner.Rows(0)), cfg.MovementWarning()...); len(notes) > 0 {
			out["notes"] = notes
		}
	}
	return out
}

// status returns the metadata of the next question: what it asks for, progress, the last row, and more pairs of key and
// value.
func (s *session) status(ask string, more ...any) api.Meta {
	meta := api.Done(s.done, s.total)
	meta["ask"] = ask
	if s.part != "" {
		meta["part"] = s.part
	}
	for i := 0; i+1 < len(more); i += 2 {
		meta[more[i].(string)] = more[i+1]
	}
	if s.row != nil {
		meta["row"] = s.row
	}
	return meta
}

// size returns the number of values of an image.
func (s *session) size() int { return s.samples.Height * s.samples.Width * s.samples.Channels }

func (s *session) prepare() error {
	req := s.req
	s.samples = passes.Samples{
		Height: req.Shape[0], Width: req.Shape[1], Channels: req.Shape[2], Images: req.Images, Counts: req.Counts,
		Range: schedule.Range{Min: req.SigmaMin, Max: req.SigmaMax},
	}
	if req.Images == 0 {
		for _, n := range req.Counts {
			s.samples.Images += n
		}
	}
	if req.Kind == "few" {
		s.j, s.few = 1, &fewSearch{session: s}
		return s.few.prepare(req.Config)
	}
	if err := s.samples.Check(); err != nil {
		return err
	}
	if req.Kind == "geodesic" {
		return s.prepareGeodesic()
	}
	return s.prepareLearned()
}

func (s *session) prepareGeodesic() error {
	var req api.OfferedGeodesic
	if err := api.DecodeRequest(s.req.Config, &req); err != nil {
		return err
	}
	family := schedule.Family{PerClass: req.PerClass, Basis: req.Basis, K: req.K, Cuts: req.Cuts}
	b, err := s.catalog.BasisFor(family, s.samples.Height, s.samples.Width, nil, nil)
	if err != nil {
		return err
	}
	if catalog.StoredByName(family.Basis) {
		family.K, s.basis = b.K(), b
	}
	s.j, s.mode = b.J(), kernels.LossOnly
	s.geodesic = &passes.GeodesicSettings{
		T: req.T, G0: max(req.G0, s.samples.Range.G0()), C: req.C, Knots: req.Knots, Order: req.Order,
		Points: req.Points, Samples: req.Samples, Batch: req.Batch, Seed: req.Seed, Family: family, Progress: s.progress,
	}
	return passes.CheckAsked(s.samples, s.j, *s.geodesic)
}

func (s *session) prepareLearned() error {
	var sent map[string]json.RawMessage
	if err := json.Unmarshal(s.req.Config, &sent); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		if !slices.Contains(train.RemoteFields, name) {
			return api.Errorf(api.BadRequest, "%s is not a field here", name).
				WithHint("Of a run's fields these apply to a network that the client keeps: %s.",
					strings.Join(slices.Sorted(slices.Values(train.RemoteFields)), ", "))
		}
	}
	cfg, err := runs.ReadConfig(s.req.Config)
	if err != nil {
		return err
	}
	var src train.Sources
	if err := runs.AddSchedule(&src, s.catalog, cfg, s.samples.Range.T()); err != nil {
		return err
	}
	if name := cfg.Family.Basis; name != "" && !basis.ByFormula(name) {
		own := src.ScheduleBasis
		if own != nil && src.Schedule.Family().Basis != name {
			own = nil
		}
		if src.Basis, err = s.catalog.BasisFor(cfg.Family, s.samples.Height, s.samples.Width, own, nil); err != nil {
			return err
		}
	}
	if s.learner, err = train.NewRemote(cfg, s.samples, src, s); err != nil {
		return err
	}
	s.j, s.mode = s.learner.J(), s.learner.Mode()
	return nil
}

func (s *session) progress(done, total int) { s.done, s.total = int64(done), int64(total) }

// work ends when all is done, the client leaves or ctx ends. It stores what was learned until then; an incomplete
// geodesic is not stored.
func (s *session) work(ctx context.Context) error {
	if s.few != nil {
		return s.few.work(ctx)
	}
	if s.learner != nil {
		return s.learn(ctx)
	}
	s.total = int64(s.geodesic.Points * s.geodesic.Samples)
	g, err := passes.AskGeodesic(ctx, s, s.samples, s.j, *s.geodesic)
	if err != nil {
		return unlessLeft(err)
	}
	s.complete = true
	if err := s.store(g.Schedule, s.basis, schedule.Provenance{Kind: "geodesic", Seed: &s.geodesic.Seed}); err != nil {
		return err
	}
	s.info.Energies = catalog.DescribeEnergies(g.Reports)
	return nil
}

// unlessLeft returns err, or nil if it says that the client has left.
func unlessLeft(err error) error {
	if errors.Is(err, sampler.ErrLeft) {
		return nil
	}
	return err
}

// learn takes the steps, and stores those that were taken whatever ends them.
func (s *session) learn(ctx context.Context) error {
	s.total = s.learner.Steps() * int64(s.learner.Config().Batch)
	err := s.learner.Start(ctx, s.progress)
	s.done = 0
	for err == nil && s.steps < s.learner.Steps() && s.stopped == "" {
		var row train.Row
		row, err = s.learner.Step(ctx)
		if row.Step == 0 {
			break
		}
		if runs.StopsRun(err) {
			s.stopped, err = err.Error(), nil
		}
		s.steps, s.row = row.Step, runs.FiniteValues(row)
		s.done += int64(s.learner.Config().Batch)
		if time.Since(s.storedAt) > storeEvery && err == nil {
			err = s.storeLearned()
		}
	}
	if s.steps == 0 {
		return unlessLeft(err)
	}
	s.complete = err == nil
	return errors.Join(unlessLeft(err), s.storeLearned())
}

func (s *session) storeLearned() error {
	cfg, rows := s.learner.Config(), s.learner.Rows(0)
	last := rows[len(rows)-1]
	p := schedule.Provenance{Kind: "learned", Stage: cfg.Stage, Steps: last.Step, Kimg: last.Kimg, Seed: &cfg.Seed}
	p.Moved = s.learner.Moved()
	return s.store(s.learner.Schedule(), s.learner.Basis(), p)
}

// store stores a schedule under the request's name. Later stores replace the first.
func (s *session) store(made *schedule.Schedule, dense *basis.Basis, p schedule.Provenance) error {
	parts := catalog.Parts{Schedule: s.catalog.WithProvenance(made, p), Basis: dense}
	info, err := s.catalog.StoreSchedule(s.req.Name, parts, s.req.Replace || s.info != nil)
	if err != nil {
		return err
	}
	s.storedAt, s.info = time.Now(), &info
	return nil
}
