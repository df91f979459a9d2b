package remote

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/runs"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train"
	"github.com/anisoflight/anisoflight/train/passes"
)

// storeEvery is how long steps stay in memory alone.
const storeEvery = 15 * time.Second

// work is what a session does with the answers.
type work struct {
	catalog *catalog.Catalog
	req     api.RemoteSchedule
	ask     passes.Asker
	samples passes.Samples
	j       int
	mode    kernels.Mode

	geodesic *passes.GeodesicSettings // of kind geodesic
	basis    *basis.Basis             // that is stored with a geodesic
	learn    *train.Remote            // of kind learned

	done, total int64 // samples
	row         map[string]float64
	kept        time.Time
	replace     bool
}

// result is what a session has made.
type result struct {
	info     *api.ScheduleInfo // nil where nothing was stored
	steps    int64
	complete bool
	stopped  string // why it stopped of its own; empty where it did not
	row      map[string]float64
}

// describe returns what the end of an exchange says.
func (r *result) describe() map[string]any {
	out := map[string]any{"complete": r.complete}
	if r.info != nil {
		out["schedule"] = r.info
	}
	if r.steps > 0 {
		out["steps"] = r.steps
	}
	if r.stopped != "" {
		out["stopped"] = r.stopped
	}
	return out
}

// stored is describe as the reply that says that nothing more is asked.
func (r *result) stored() api.Meta {
	meta := api.Meta(r.describe())
	meta["event"] = "stored"
	if r.row != nil {
		meta["row"] = r.row
	}
	return meta
}

// newWork checks a request and makes ready for it.
func newWork(c *catalog.Catalog, req api.RemoteSchedule, ask passes.Asker) (*work, error) {
	w := &work{catalog: c, req: req, ask: ask, kept: time.Now(), replace: req.Replace}
	w.samples = passes.Samples{
		Height: req.Shape[0], Width: req.Shape[1], Channels: req.Shape[2], Images: req.Images, Counts: req.Counts,
		Range: schedule.Range{Min: req.SigmaMin, Max: req.SigmaMax},
	}
	if req.Images == 0 {
		for _, n := range req.Counts {
			w.samples.Images += n
		}
	}
	if err := w.samples.Check(); err != nil {
		return nil, err
	}
	if req.Kind == "geodesic" {
		return w, w.prepareGeodesic()
	}
	return w, w.prepareLearned()
}

// basisOf returns the basis of a family, and the one that has to be stored with a schedule on it; nil where its name is
// enough.
func (w *work) basisOf(f schedule.Family) (b, dense *basis.Basis, err error) {
	b, err = w.catalog.BasisFor(f, w.samples.Height, w.samples.Width, nil, nil)
	if err == nil && catalog.StoredByName(f.Basis) {
		dense = b
	}
	return b, dense, err
}

func (w *work) prepareGeodesic() error {
	var req api.RemoteGeodesic
	req.SetDefaults()
	if err := api.DecodeStruct(w.req.Config, &req); err != nil {
		return err
	}
	if err := req.Validate(); err != nil {
		return err
	}
	family := schedule.Family{PerClass: req.PerClass, Basis: req.Basis, K: req.K, Cuts: req.Cuts}
	b, dense, err := w.basisOf(family)
	if err != nil {
		return err
	}
	if dense != nil {
		family.K = dense.K()
	}
	w.j, w.mode, w.basis = b.J(), kernels.LossOnly, dense
	w.geodesic = &passes.GeodesicSettings{
		T: req.T, G0: max(req.G0, w.samples.Range.G0()), C: req.C, Knots: req.Knots, Points: req.Points, Samples: req.Samples,
		Batch: req.Batch, Seed: req.Seed, Family: family, Progress: w.progress,
	}
	return passes.CheckAsked(w.samples, w.j, *w.geodesic)
}

func (w *work) prepareLearned() error {
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
	if cfg.Schedule != "" {
		ref := api.ScheduleRef{Name: cfg.Schedule, T: cfg.T}
		if ref.T == 0 {
			ref.T = w.samples.Range.T()
		}
		from, err := w.catalog.ScheduleNamed(ref)
		if err != nil {
			return err
		}
		src.Schedule, src.ScheduleBasis = from.Schedule, from.Basis
	}
	if cfg.Family.Basis != "" && !basis.ByFormula(cfg.Family.Basis) {
		if own := src.Schedule; own != nil && src.ScheduleBasis != nil && own.Family().Basis == cfg.Family.Basis {
			src.Basis = src.ScheduleBasis
		} else if _, src.Basis, err = w.basisOf(cfg.Family); err != nil {
			return err
		}
	}
	if w.learn, err = train.NewRemote(cfg, w.samples, src, w.ask); err != nil {
		return err
	}
	w.j, w.mode = w.learn.J(), w.learn.Mode()
	return nil
}

// progress takes note of how much is measured.
func (w *work) progress(done, total int) { w.done, w.total = int64(done), int64(total) }

// says returns what goes with the next question.
func (w *work) says() api.Meta {
	meta := api.Done(w.done, w.total)
	if w.row != nil {
		meta["row"] = w.row
	}
	return meta
}

// run works until all is done, the client leaves or ctx ends, and stores what there is.
func (w *work) run(ctx context.Context) (*result, error) {
	if w.geodesic != nil {
		return w.measure(ctx)
	}
	return w.train(ctx)
}

// measure makes the geodesic: of a client that leaves before the end, nothing.
func (w *work) measure(ctx context.Context) (*result, error) {
	w.total = int64(w.geodesic.Points * w.geodesic.Samples)
	g, err := passes.AskGeodesic(ctx, w.ask, w.samples, w.j, *w.geodesic)
	if err != nil {
		return w.left(&result{}, err)
	}
	p := schedule.Provenance{Kind: "geodesic", Seed: &w.geodesic.Seed}
	out := &result{complete: true}
	if out.info, err = w.store(g.Schedule, w.basis, p); err != nil {
		return nil, err
	}
	for _, r := range g.Reports {
		out.info.Energies = append(out.info.Energies, api.Energy{
			Energy: r.Energy, Stderr: r.EnergyStderr, Bound: r.Bound, BoundStderr: r.BoundStderr,
		})
	}
	return out, nil
}

// left returns no error where the client has left by itself.
func (w *work) left(out *result, err error) (*result, error) {
	if errors.Is(err, errLeft) {
		return out, nil
	}
	return nil, err
}

// train takes the steps. Whatever ends them, those that were taken are stored.
func (w *work) train(ctx context.Context) (out *result, err error) {
	w.total = w.learn.Steps() * int64(w.learn.Config().Batch)
	if err := w.learn.Start(ctx, w.progress); err != nil {
		return w.left(&result{}, err)
	}
	w.done = 0
	out = &result{}
	for out.steps < w.learn.Steps() && err == nil && out.stopped == "" {
		var row train.Row
		row, err = w.learn.Step(ctx)
		if row.Step == 0 {
			break
		}
		var lost *train.DivergedError
		var early *train.StoppedError
		if errors.As(err, &lost) || errors.As(err, &early) {
			out.stopped, err = err.Error(), nil
		}
		out.steps = row.Step
		w.took(row)
		if time.Since(w.kept) > storeEvery && err == nil {
			out.info, err = w.keep()
		}
	}
	if out.steps == 0 {
		return w.left(out, err)
	}
	out.complete, out.row = err == nil, w.row
	info, unkept := w.keep()
	if unkept != nil {
		return nil, errors.Join(err, unkept)
	}
	out.info = info
	if err != nil {
		return w.left(out, err)
	}
	return out, nil
}

// took notes a step.
func (w *work) took(row train.Row) {
	w.done += int64(w.learn.Config().Batch)
	w.row = map[string]float64{}
	for i, v := range row.Values() {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			w.row[train.RowColumns[i]] = v
		}
	}
}

// keep stores the schedule as it stands.
func (w *work) keep() (*api.ScheduleInfo, error) {
	cfg, rows := w.learn.Config(), w.learn.Rows()
	last := rows[len(rows)-1]
	p := schedule.Provenance{Kind: "learned", Stage: cfg.Stage, Steps: last.Step, Kimg: last.Kimg, Seed: &cfg.Seed}
	p.EnergyBefore, p.EnergyAfter = runs.Energies(rows)
	s, dense := w.learn.Schedule()
	return w.store(s, dense, p)
}

// store stores a schedule under the name that was asked for, from then on in the place of itself.
func (w *work) store(s *schedule.Schedule, dense *basis.Basis, p schedule.Provenance) (*api.ScheduleInfo, error) {
	stored := catalog.Schedule{Schedule: w.catalog.Signed(s, p), Name: w.req.Name, Basis: dense}
	if err := w.catalog.StoreSchedule(stored, w.replace); err != nil {
		return nil, err
	}
	w.replace, w.kept = true, time.Now()
	info := catalog.DescribeSchedule("schedule", stored)
	return &info, nil
}
