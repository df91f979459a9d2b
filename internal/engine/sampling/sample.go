package sampling

import (
	"cmp"
	"context"
	"fmt"
	"strconv"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/batch"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/train/data"
)

// Sampler draws samples with the models of a catalogue.
type Sampler struct {
	Catalog  *catalog.Catalog
	Batcher  *batch.Batcher
	MaxBytes int64 // that a reply may have
}

// sampling is a Sample request with all that it needs.
type sampling struct {
	planner
	sampler *Sampler
	req     api.Sample
	network *kernels.Model
	guide   *sampler.Guide                     // nil for none
	hold    func() (release func(), err error) // of the weights of the model and the guide
	schema  api.Schema
	h, w, c int
}

// Prepare checks and prices a request for a number of samples.
func (k *Sampler) Prepare(_ context.Context, req api.Sample) (*api.Job, error) {
	n, err := req.CheckRows()
	if err != nil {
		return nil, err
	}
	s, err := k.newSampling(req)
	if err != nil {
		return nil, err
	}
	job, err := s.priceJob(n)
	if err != nil {
		return nil, err
	}
	job.Run = func(ctx context.Context, emit func(api.Event) error) error {
		release, err := s.hold()
		if err != nil {
			return err
		}
		defer release()
		return s.run(ctx, n, s.draw, emit)
	}
	return job, nil
}

// Exchange samples from the caller's own latents.
func (k *Sampler) Exchange(_ context.Context, req api.Sample, in api.Schema) (*api.Exchange, error) {
	if err := req.CheckExchange(); err != nil {
		return nil, err
	}
	s, err := k.newSampling(req)
	if err != nil {
		return nil, err
	}
	images, err := tables.NewImages(s.model, in, []string{"latent"})
	if err != nil {
		return nil, err
	}
	if first := s.labels()[:1]; s.planAll(first) == nil { // what fails is refused when the labels come
		if err := s.note(first[0]); err != nil {
			return nil, err
		}
	}
	release, err := s.hold()
	if err != nil {
		return nil, err
	}
	received := 0
	return &api.Exchange{
		Out: s.schema, Window: tables.Window, BatchBytes: int64(req.BatchBytes), Close: release,
		Do: func(ctx context.Context, b api.Batch, emit func(api.Event) error) error {
			first := received
			latents, err := images.Read(b, "latent")
			if err != nil {
				return err
			}
			labels, err := images.Labels(b, int64(first))
			if err != nil {
				return err
			}
			if err := s.planAll(labels); err != nil {
				return err
			}
			if _, err := s.price(api.SaturatingProduct(int64(len(labels)), 1+s.previews())); err != nil {
				return err
			}
			received += b.Rows
			size := s.h * s.w * s.c
			return s.run(ctx, len(labels), func(i int, x []float32) sampler.Row {
				copy(x, latents[i*size:(i+1)*size])
				return sampler.Row{Index: int64(first + i), Seed: s.req.Seed + uint64(first+i), Label: labels[i]}
			}, emit)
		},
	}, nil
}

// newSampling checks everything about a request except its rows.
func (k *Sampler) newSampling(req api.Sample) (*sampling, error) {
	m, err := k.Catalog.Model(req.Model)
	if err != nil {
		return nil, err
	}
	if req.Weights != "" && req.Weights != m.Hash {
		return nil, api.Errorf(api.ModelNotFound, "The model %q here has the weights %.12s, not %.12s", m.Name, m.Hash,
			req.Weights).WithHint("Another server may have them; or leave out weights.")
	}
	s := &sampling{sampler: k, planner: planner{model: m}}
	s.h, s.w, s.c = m.ImageSize()
	if req.Plan.Given() {
		err = s.takePlan(&req)
	} else {
		err = s.takeSchedule(&req)
	}
	if err != nil {
		return nil, err
	}
	if s.guide, s.hold, err = NewGuide(k.Catalog, req.Guided, m, s.basis); err != nil {
		return nil, err
	}
	valueType := api.Uint8
	switch inUnits := m.Shape.Normalization != nil; {
	case req.DType == api.Float32.String(), req.DType == "" && inUnits:
		valueType = api.Float32
	case inUnits:
		return nil, api.Errorf(api.BadRequest, "dtype must be float32: the data of the model %q have units of their own",
			m.Name).WithHint("Leave it out.")
	}
	req.DType = valueType.String()
	s.req = req
	s.schema = api.Schema{
		Columns: []api.Column{
			{Name: "index", Type: api.Int64},
			{Name: "seed", Type: api.Uint64},
			{Name: "label", Type: api.Int32},
			{Name: "step", Type: api.Int32},
			{Name: "nfe", Type: api.Int32},
			tables.ImageColumn("sample", valueType, data.Layout(req.Layout), s.h, s.w, s.c),
		},
		Metadata: tables.OfModel(m, "Sample", s.resolvedRequest()),
	}
	return s, nil
}

// takeSchedule sets what a solver on a schedule needs, and completes the request.
func (s *sampling) takeSchedule(req *api.Sample) (err error) {
	if s.sched, s.network, err = s.sampler.Catalog.ScheduleAndNetwork(req.Schedule, s.model); err != nil {
		return err
	}
	s.basis = s.network.Basis()
	req.Solver = cmp.Or(req.Solver, api.DefaultSolver)
	if req.Grid, s.sched, err = s.model.OnLevels(req.Grid, s.sched); err != nil {
		return err
	}
	if s.set, err = settingsOf(*req).Resolve(); err != nil {
		return err
	}
	law, err := s.sched.StartFor(req.Start)
	if err == nil {
		s.start, err = newStart(law, fmt.Sprintf("schedule %q", s.sched.Name), s.model, s.basis)
	}
	return err
}

// takePlan sets what a plan needs, and completes the request.
func (s *sampling) takePlan(req *api.Sample) (err error) {
	c := s.sampler.Catalog
	if s.made, err = c.PlanNamed(req.Plan); err != nil {
		return err
	}
	if err = s.made.CheckNetwork(s.model, req.OtherWeights); err != nil {
		return err
	}
	if s.made.Guides() && req.Guidance == 1 {
		return api.Errorf(api.BadRequest, "The plan sets the guidance of its evaluations, but there is none").
			WithHint("Give the guidance that it was made with.")
	}
	if s.network, err = c.NetworkFor(s.made, s.model); err != nil {
		return err
	}
	s.basis = s.network.Basis()
	req.Solver = s.made.File.Solver
	s.start, err = newStart(s.made.Start, "plan", s.model, s.basis)
	return err
}

// resolvedRequest returns the request for the reply's metadata. Many labels are left out: they come back as a column.
func (s *sampling) resolvedRequest() any {
	r := s.req
	if len(r.Labels) > 256 {
		n := len(r.Labels)
		r.N, r.Labels = &n, nil
	}
	if s.made != nil {
		r.Plan = api.PlanRef{Name: cmp.Or(s.made.Name, s.made.File.Schedule)}
		return r
	}
	r.Schedule = api.ScheduleRef{Name: s.sched.Name, T: s.req.Schedule.T}
	r.Order = s.set.Order
	return r
}

// note adds the notes on the plan of a label to the reply's metadata.
func (s *sampling) note(label int32) error {
	p, err := s.planFor(label)
	if err != nil {
		return err
	}
	if s.made != nil {
		tables.Note(s.schema.Metadata, s.made.File.Notes)
		return nil
	}
	tables.Note(s.schema.Metadata, notes(s.req, s.set, s.sched, s.model, p))
	return nil
}

// previews returns the number of preview rows of each sample.
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

// priceJob makes the plans of every possible label and prices the reply.
func (s *sampling) priceJob(n int) (*api.Job, error) {
	// The price of the final rows needs no plan: a request that is too large costs nothing.
	if _, err := s.price(int64(n)); err != nil {
		return nil, err
	}
	labels := s.req.Labels
	if err := tables.CheckLabels(labels, s.classes()); err != nil {
		return nil, err
	}
	if labels == nil {
		labels = s.labels()
	}
	if err := s.planAll(labels); err != nil {
		return nil, err
	}
	if err := s.note(labels[0]); err != nil {
		return nil, err
	}
	s.schema.Metadata["steps"] = strconv.Itoa(s.plan.Steps())
	s.schema.Metadata["nfe"] = strconv.Itoa(s.guide.Evaluations(s.plan, s.plan.NFE))
	rows := api.SaturatingProduct(int64(n), 1+s.previews())
	bytes, err := s.price(rows)
	return &api.Job{
		Schema: s.schema, Rows: rows, Bytes: bytes, BatchBytes: int64(s.req.BatchBytes), Samples: n, Part: s.part,
	}, err
}

// part returns the fields in which the request for samples first … first + n − 1 differs from this one.
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

// price returns the bytes of rows rows of the reply, or TOO_LARGE if they exceed the limit.
func (s *sampling) price(rows int64) (int64, error) {
	return tables.Price(s.sampler.MaxBytes, s.schema, rows)
}

// planAll makes the plans of labels. Their memory is limited.
func (s *sampling) planAll(labels []int32) error {
	rows := map[int]bool{}
	for _, label := range labels {
		row, err := s.row(label)
		if err != nil {
			return err
		}
		rows[row] = true
	}
	const stageBytes, subspaceBytes = 200, 100
	j := int64(s.basis.J())
	bytes := api.SaturatingProduct(api.SaturatingProduct(int64(s.set.NFE), int64(len(rows))), stageBytes+subspaceBytes*j)
	if bytes > s.sampler.MaxBytes { // a plan that was made has been read already
		return api.Errorf(api.TooLarge, "Plans for %d rows of the schedule with these steps exceed max_bytes", len(rows)).
			WithHint("Ask for fewer steps, or sample fewer classes at a time.")
	}
	for _, label := range labels {
		if _, err := s.planFor(label); err != nil {
			return err
		}
	}
	return nil
}

func (s *sampling) classes() int { return s.model.Shape.Labels }

func (s *sampling) labels() []int32 {
	if s.classes() == 0 {
		return []int32{-1}
	}
	labels := make([]int32, s.classes())
	for i := range labels {
		labels[i] = int32(i)
	}
	return labels
}
