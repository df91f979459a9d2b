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

// maker makes a schedule of the answers of a client, and stores it.
type maker struct {
	catalog *catalog.Catalog
	req     api.OfferNetwork
	asker   passes.Asker
	samples passes.Samples
	j       int          // subspaces
	mode    kernels.Mode // of the estimator; LossOnly if residuals alone are asked for

	geodesic *passes.GeodesicSettings // of kind geodesic
	basis    *basis.Basis             // that is stored with a geodesic
	learner  *train.Remote            // of kind learned
	few      *fewSearch               // of kind few

	done, total int64  // samples, or thousandths of a search
	part        string // of a search in work
	row         map[string]any
	storedAt    time.Time         // when it was stored last, or begun
	info        *api.ScheduleInfo // nil until something is stored
	steps       int64
	complete    bool
	stopped     string // why it stopped by itself; empty if it did not
}

func (w *maker) result() map[string]any {
	if w.few != nil {
		return w.few.result()
	}
	out := map[string]any{"complete": w.complete}
	if w.info != nil {
		out["schedule"] = w.info
	}
	if w.steps > 0 {
		out["steps"] = w.steps
	}
	if w.stopped != "" {
		out["stopped"] = w.stopped
	}
	if w.learner != nil {
		cfg := w.learner.Config()
		if notes := append(cfg.Warnings(w.learner.Rows(0)), cfg.MovementWarning()...); len(notes) > 0 {
			out["notes"] = notes
		}
	}
	return out
}

// status returns the metadata of the next question: what it asks for, progress, the last row, and more pairs of key and
// value.
func (w *maker) status(ask string, more ...any) api.Meta {
	meta := api.Done(w.done, w.total)
	meta["ask"] = ask
	if w.part != "" {
		meta["part"] = w.part
	}
	for i := 0; i+1 < len(more); i += 2 {
		meta[more[i].(string)] = more[i+1]
	}
	if w.row != nil {
		meta["row"] = w.row
	}
	return meta
}

// size returns the number of values of an image.
func (w *maker) size() int { return w.samples.Height * w.samples.Width * w.samples.Channels }

func (w *maker) prepare(c *catalog.Catalog, req api.OfferNetwork, s *session) error {
	w.catalog, w.req, w.asker, w.storedAt = c, req, s, time.Now()
	w.samples = passes.Samples{
		Height: req.Shape[0], Width: req.Shape[1], Channels: req.Shape[2], Images: req.Images, Counts: req.Counts,
		Range: schedule.Range{Min: req.SigmaMin, Max: req.SigmaMax},
	}
	if req.Images == 0 {
		for _, n := range req.Counts {
			w.samples.Images += n
		}
	}
	if req.Kind == "few" {
		w.j, w.few = 1, &fewSearch{session: s}
		return w.few.prepare(req.Config)
	}
	if err := w.samples.Check(); err != nil {
		return err
	}
	if req.Kind == "geodesic" {
		return w.prepareGeodesic()
	}
	return w.prepareLearned()
}

func (w *maker) prepareGeodesic() error {
	var req api.OfferedGeodesic
	if err := api.DecodeRequest(w.req.Config, &req); err != nil {
		return err
	}
	family := schedule.Family{PerClass: req.PerClass, Basis: req.Basis, K: req.K, Cuts: req.Cuts}
	b, err := w.catalog.BasisFor(family, w.samples.Height, w.samples.Width, nil, nil)
	if err != nil {
		return err
	}
	if catalog.StoredByName(family.Basis) {
		family.K, w.basis = b.K(), b
	}
	w.j, w.mode = b.J(), kernels.LossOnly
	w.geodesic = &passes.GeodesicSettings{
		T: req.T, G0: max(req.G0, w.samples.Range.G0()), C: req.C, Knots: req.Knots, Order: req.Order,
		Points: req.Points, Samples: req.Samples, Batch: req.Batch, Seed: req.Seed, Family: family, Progress: w.progress,
	}
	return passes.CheckAsked(w.samples, w.j, *w.geodesic)
}

func (w *maker) prepareLearned() error {
	var sent map[string]json.RawMessage
	if err := json.Unmarshal(w.req.Config, &sent); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		if !slices.Contains(train.RemoteFields, name) {
			return api.Errorf(api.BadRequest, "%s is not a field here", name).
				WithHint("Of a run's fields these apply to a network that the client keeps: %s.",
					strings.Join(slices.Sorted(slices.Values(train.RemoteFields)), ", "))
		}
	}
	cfg, err := runs.ReadConfig(w.req.Config)
	if err != nil {
		return err
	}
	var src train.Sources
	if err := runs.AddSchedule(&src, w.catalog, cfg, w.samples.Range.T()); err != nil {
		return err
	}
	if name := cfg.Family.Basis; name != "" && !basis.ByFormula(name) {
		own := src.ScheduleBasis
		if own != nil && src.Schedule.Family().Basis != name {
			own = nil
		}
		if src.Basis, err = w.catalog.BasisFor(cfg.Family, w.samples.Height, w.samples.Width, own, nil); err != nil {
			return err
		}
	}
	if w.learner, err = train.NewRemote(cfg, w.samples, src, w.asker); err != nil {
		return err
	}
	w.j, w.mode = w.learner.J(), w.learner.Mode()
	return nil
}

func (w *maker) progress(done, total int) { w.done, w.total = int64(done), int64(total) }

// work ends when all is done, the client leaves or ctx ends. It stores what was learned until then; an incomplete
// geodesic is not stored.
func (w *maker) work(ctx context.Context) error {
	if w.few != nil {
		return w.few.work(ctx)
	}
	if w.learner != nil {
		return w.learn(ctx)
	}
	w.total = int64(w.geodesic.Points * w.geodesic.Samples)
	g, err := passes.AskGeodesic(ctx, w.asker, w.samples, w.j, *w.geodesic)
	if err != nil {
		return unlessLeft(err)
	}
	w.complete = true
	if err := w.store(g.Schedule, w.basis, schedule.Provenance{Kind: "geodesic", Seed: &w.geodesic.Seed}); err != nil {
		return err
	}
	w.info.Energies = catalog.DescribeEnergies(g.Reports)
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
func (w *maker) learn(ctx context.Context) error {
	w.total = w.learner.Steps() * int64(w.learner.Config().Batch)
	err := w.learner.Start(ctx, w.progress)
	w.done = 0
	for err == nil && w.steps < w.learner.Steps() && w.stopped == "" {
		var row train.Row
		row, err = w.learner.Step(ctx)
		if row.Step == 0 {
			break
		}
		if runs.StopsRun(err) {
			w.stopped, err = err.Error(), nil
		}
		w.steps, w.row = row.Step, runs.FiniteValues(row)
		w.done += int64(w.learner.Config().Batch)
		if time.Since(w.storedAt) > storeEvery && err == nil {
			err = w.storeLearned()
		}
	}
	if w.steps == 0 {
		return unlessLeft(err)
	}
	w.complete = err == nil
	return errors.Join(unlessLeft(err), w.storeLearned())
}

func (w *maker) storeLearned() error {
	cfg, rows := w.learner.Config(), w.learner.Rows(0)
	last := rows[len(rows)-1]
	p := schedule.Provenance{Kind: "learned", Stage: cfg.Stage, Steps: last.Step, Kimg: last.Kimg, Seed: &cfg.Seed}
	p.Moved = w.learner.Moved()
	s, dense := w.learner.Schedule(), w.learner.Basis()
	return w.store(s, dense, p)
}

// store stores a schedule under the request's name. Later stores replace the first.
func (w *maker) store(s *schedule.Schedule, dense *basis.Basis, p schedule.Provenance) error {
	parts := catalog.Parts{Schedule: w.catalog.WithProvenance(s, p), Basis: dense}
	info, err := w.catalog.StoreSchedule(w.req.Name, parts, w.req.Replace || w.info != nil)
	if err != nil {
		return err
	}
	w.storedAt, w.info = time.Now(), &info
	return nil
}
