package sampling

import (
	"context"
	"strconv"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/batch"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/guides"
	"github.com/anisoflight/anisoflight/internal/engine/input"
	"github.com/anisoflight/anisoflight/internal/engine/reply"
	"github.com/anisoflight/anisoflight/internal/engine/starts"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/train/data"
)

// Sampler draws samples with the models of a catalogue.
type Sampler struct {
	Catalog  *catalog.Catalog
	Batcher  *batch.Batcher
	MaxBytes int64 // that a reply may have
}

// sampling is a Sample request with everything it needs, all of it immutable.
type sampling struct {
	by      *Sampler
	req     api.Sample
	model   *catalog.Model
	on      *kernels.Model
	sched   catalog.Schedule
	start   *starts.Matched      // nil for noise alone
	guide   *guides.Guide        // nil for none
	plans   map[int]*solver.Plan // by row of the schedule
	plan    *solver.Plan         // one of them: all have equal structure
	steps   int                  // solver steps
	set     solver.Settings      // of the sampler, resolved
	schema  api.Schema
	h, w, c int
}

// newSampling checks everything about a request but its rows.
func (k *Sampler) newSampling(req api.Sample) (*sampling, error) {
	m, err := k.Catalog.Model(req.Model)
	if err != nil {
		return nil, err
	}
	if req.Weights != "" && req.Weights != m.Hash {
		return nil, api.Errorf(api.ModelNotFound, "The model %q here has the weights %.12s, not %.12s", m.Name, m.Hash,
			req.Weights).WithHint("Another server may have them; or leave out weights.")
	}
	s := &sampling{by: k, req: req, model: m, plans: map[int]*solver.Plan{}}
	if err := s.prepare(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *sampling) prepare() (err error) {
	s.h, s.w, s.c = s.model.ImageSize()
	if s.sched, s.on, err = s.by.Catalog.ScheduleOn(s.req.Schedule, s.model); err != nil {
		return err
	}
	s.req = onSampler(s.req, s.sched)
	if s.req.Grid, s.sched, err = s.model.OnLevels(s.req.Grid, s.sched); err != nil {
		return err
	}
	if s.set, err = settingsOf(s.req).Resolve(); err != nil {
		return err
	}
	if s.start, err = starts.New(s.sched, s.req.Start, s.model, s.on.Basis()); err != nil {
		return err
	}
	if s.guide, err = guides.New(s.by.Catalog, s.req.Guided, s.model, s.on.Basis()); err != nil {
		return err
	}
	if s.start != nil && s.req.AFS {
		return errAFS()
	}
	t, err := s.valueType()
	if err != nil {
		return err
	}
	s.schema = api.Schema{
		Columns: []api.Column{
			{Name: "index", Type: api.Int64},
			{Name: "seed", Type: api.Uint64},
			{Name: "label", Type: api.Int32},
			{Name: "step", Type: api.Int32},
			{Name: "nfe", Type: api.Int32},
			input.ImageColumn("sample", t, data.Layout(s.req.Layout), s.h, s.w, s.c),
		},
		Metadata: reply.OfModel(s.model, "Sample", s.resolved()),
	}
	return nil
}

// valueType returns the type of the reply's values, after filling in the request's.
func (s *sampling) valueType() (api.Type, error) {
	own := s.model.Shape.Normalization
	switch {
	case s.req.DType == "" && own != nil, s.req.DType == api.Float32.String():
		s.req.DType = api.Float32.String()
		return api.Float32, nil
	case own != nil:
		return 0, api.Errorf(api.BadRequest, "dtype must be float32: the data of the model %q have units of their own",
			s.model.Name).WithHint("Leave it out.")
	}
	s.req.DType = api.Uint8.String()
	return api.Uint8, nil
}

// resolved is the request as its reply's metadata tells it: labels, of which there may be millions, come back as a
// column.
func (s *sampling) resolved() any {
	r := s.req
	if len(r.Labels) > 256 {
		n := len(r.Labels)
		r.N, r.Labels = &n, nil
	}
	r.Schedule = api.ScheduleRef{Name: s.sched.Name, T: s.req.Schedule.T}
	r.Order = s.set.Order
	return r
}

// note puts the notes on the plan of a label into the reply's metadata.
func (s *sampling) note(label int32) error {
	p, err := s.planFor(label)
	if err != nil {
		return err
	}
	row, err := s.sched.Row(int(label))
	if err != nil {
		return err
	}
	reply.Note(s.schema.Metadata, notes(s.req, s.set, s.sched, row, s.model, p))
	return nil
}

// planFor makes the plan of the schedule's row for a label, once for each row.
func (s *sampling) planFor(label int32) (*solver.Plan, error) {
	row, err := s.sched.Row(int(label))
	if err != nil {
		return nil, err
	}
	if !s.on.Basis().Knows(int(label)) {
		return nil, api.Errorf(api.BadRequest, "The basis %q has vectors for each class and none for label %d",
			s.sched.Family().Basis, label).
			WithHint("Choose among its classes: %v.", s.on.Basis().Classes())
	}
	if p, ok := s.plans[row]; ok {
		return p, nil
	}
	p, err := s.sched.Plan(settingsOf(s.req), int(label), s.h, s.w, s.c)
	if err != nil {
		return nil, err
	}
	if err := s.model.CheckPlan(p); err != nil {
		return nil, err
	}
	if err := s.start.Check(label, p); err != nil {
		return nil, err
	}
	if err := sameStructure(s.plan, p); err != nil {
		return nil, err
	}
	if s.plan == nil {
		s.plan = p
		for _, stage := range p.Stages {
			s.steps = max(s.steps, stage.Step+1)
		}
	}
	s.plans[row] = p
	return p, nil
}

// sameStructure refuses the plan of a class with other stages than that of another class; one is nil for the first.
func sameStructure(one, other *solver.Plan) error {
	if one == nil || len(one.Stages) == len(other.Stages) && one.History == other.History {
		return nil
	}
	return api.Errorf(api.BadRequest, "This grid gives the classes of this schedule different numbers of steps").
		WithHint("Sample the classes one by one, or use the grid schedule.")
}

// previews returns the number of preview rows of each sample. The step that afs saves shows none.
func (s *sampling) previews() (n int64) {
	if s.req.Every == 0 || s.plan == nil {
		return 0
	}
	for _, stage := range s.plan.Stages {
		if stage.Step >= 0 && stage.Step%s.req.Every == 0 {
			n++
		}
	}
	return n
}

// Prepare checks and prices a request that says itself how many samples it wants.
func (k *Sampler) Prepare(req api.Sample) (*api.Job, error) {
	n, err := req.CheckRows()
	if err != nil {
		return nil, err
	}
	s, err := k.newSampling(req)
	if err != nil {
		return nil, err
	}
	rows, bytes, err := s.check(n)
	if err != nil {
		return nil, err
	}
	return &api.Job{
		Schema: s.schema, Rows: rows, Bytes: bytes, BatchBytes: int64(req.BatchBytes),
		Samples: n, Part: s.part,
		Run: func(ctx context.Context, emit func(api.Event) error) error {
			release, err := s.guide.Hold(s.model)
			if err != nil {
				return err
			}
			defer release()
			return s.run(ctx, n, s.drawn, emit)
		},
	}, nil
}

// part returns what differs in the request for samples first … first + n − 1.
func (s *sampling) part(first, n int) api.Meta {
	m := api.Meta{
		"seed": s.req.Seed + uint64(first), "offset": s.req.Offset + first, "weights": s.model.Hash,
		"n": n, "labels": nil,
	}
	if s.req.Labels != nil {
		m["n"], m["labels"] = nil, s.req.Labels[first:first+n]
	}
	return m
}

// check makes the plans of every label that may come and prices the reply.
func (s *sampling) check(n int) (rows, bytes int64, err error) {
	// The final rows alone come first: their price needs no plan, and a hopeless request shall cost nothing.
	if _, err := s.price(int64(n)); err != nil {
		return 0, 0, err
	}
	classes := s.classes()
	if err := input.CheckLabels(s.req.Labels, classes); err != nil {
		return 0, 0, err
	}
	labels := s.req.Labels
	if labels == nil {
		labels = drawable(classes)
	}
	if err := s.planAll(labels); err != nil {
		return 0, 0, err
	}
	if err := s.note(labels[0]); err != nil {
		return 0, 0, err
	}
	s.schema.Metadata["steps"] = strconv.Itoa(s.steps)
	s.schema.Metadata["nfe"] = strconv.Itoa(s.guide.Evaluations(s.plan, s.plan.NFE))
	rows = api.Times(int64(n), 1+s.previews())
	bytes, err = s.price(rows)
	return rows, bytes, err
}

// price returns the bytes of so many rows of the reply, or TOO_LARGE where they exceed the limit.
func (s *sampling) price(rows int64) (int64, error) {
	return reply.Price(s.by.MaxBytes, s.schema, rows)
}

// planAll makes the plans of labels. A plan lies in memory whole, so there is a limit to all of them together.
func (s *sampling) planAll(labels []int32) error {
	rows := map[int]bool{}
	for _, label := range labels {
		row, err := s.sched.Row(int(label))
		if err != nil {
			return err
		}
		rows[row] = true
	}
	steps := max(s.req.Steps, len(s.req.Grid.T))
	for _, list := range s.req.Grid.Sigma {
		steps = max(steps, len(list))
	}
	stages := int64(2*steps + s.req.NFE)
	const stageBytes, subspaceBytes = 200, 100
	parts := int64(s.sched.Complete(settingsOf(s.req)).Parts(s.sched.J()))
	if api.Times(api.Times(stages, int64(len(rows))), stageBytes+subspaceBytes*parts) > s.by.MaxBytes {
		return api.Errorf(api.TooLarge, "So many steps on %d rows of the schedule at once are too many", len(rows)).
			WithHint("Ask for fewer steps, or sample fewer classes at a time.")
	}
	for _, label := range labels {
		if _, err := s.planFor(label); err != nil {
			return err
		}
	}
	return nil
}

// classes is the number of labels a caller may name.
func (s *sampling) classes() int { return s.model.Shape.Labels }

// drawable lists the labels that may be drawn.
func drawable(classes int) []int32 {
	if classes == 0 {
		return []int32{-1}
	}
	labels := make([]int32, classes)
	for i := range labels {
		labels[i] = int32(i)
	}
	return labels
}
