package sampling

import (
	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// Plan returns the numbers of a sampler, without a model or a device.
func Plan(c *catalog.Catalog, req api.PlanSampler) (any, error) {
	s, m, err := planned(c, &req)
	if err != nil {
		return nil, err
	}
	label := int32(-1)
	if req.Label != nil {
		label = *req.Label
	}
	req.Sample = onSampler(req.Sample, s)
	set, err := settingsOf(req.Sample).Resolve()
	if err != nil {
		return nil, err
	}
	parts := s.Parts(set)
	if set.NFE > api.MaxPlan/parts {
		return nil, api.Errorf(api.TooLarge, "a plan of %d evaluations in %d subspaces is too large", set.NFE, parts).
			WithHint("At most %d evaluations.", api.MaxPlan/parts)
	}
	row, err := s.Row(int(label))
	if err != nil {
		return nil, err
	}
	p, err := s.Plan(set, int(label), 0, 0, 0)
	if err != nil {
		return nil, err
	}
	if m != nil {
		if err := m.CheckPlan(p); err != nil {
			return nil, err
		}
	}
	from, err := s.StartFor(req.Start)
	if err != nil {
		return nil, err
	}
	if from != nil && req.AFS {
		return nil, errAFS()
	}
	out := api.Plan{
		Format: api.PlanFormat, Version: api.PlanVersion, Schedule: s.Name, Label: label, Family: api.Family(s.Family()),
		Solver: set.Solver, Steps: set.Steps, NFE: p.NFE, Predicts: api.PredictsFlow, History: p.History, T: p.T,
		Init: p.Init, Start: from.Describe(), States: p.States, Notes: notes(req.Sample, set, s, row, m, p),
	}
	if p.Statistics != nil {
		h, w, channels := p.Statistics.Dims()
		out.Coordinates = &api.PlanCoordinates{Height: h, Width: w, Channels: channels, Axes: p.Statistics.At(p.Row).Axes}
	}
	if p.Data {
		out.Predicts = api.PredictsDenoised
	}
	for _, stage := range p.Stages {
		out.Stages = append(out.Stages, api.PlanStage(stage))
	}
	return out, nil
}

// planned finds the schedule of a plan, and the model where there is one, whose noise levels then rule.
func planned(c *catalog.Catalog, req *api.PlanSampler) (s catalog.Schedule, m *catalog.Model, err error) {
	if req.Model == "" {
		s, err = c.ScheduleNamed(req.ScheduleRef())
		return s, nil, err
	}
	if m, err = c.Model(req.Model); err != nil {
		if !req.Schedule.Given() {
			return s, nil, err
		}
		s, err = c.ScheduleNamed(req.Schedule) // which is enough
		return s, nil, err
	}
	if s, err = c.ScheduleFor(req.Schedule, m); err == nil {
		req.Grid, s, err = m.OnLevels(req.Grid, s)
	}
	return s, m, err
}

// errAFS refuses afs with a start from the law of the data.
func errAFS() error {
	return api.Errorf(api.BadRequest, "afs must be left out with a start from the law of the data").
		WithHint("That start is good at lower noise levels: take a lower sigma_max instead.")
}

// onSampler returns a request with the solver filled in: the one that the schedule was made for, or the default.
func onSampler(r api.Sample, s catalog.Schedule) api.Sample {
	if r.Solver != "" {
		return r
	}
	r.Solver = api.DefaultSolver
	if of := s.Sampler(); of != nil {
		if r.Solver = of.Solver; r.Order == 0 {
			r.Order = of.Order
		}
	}
	return r
}

// settingsOf returns what a request says about the sampler.
func settingsOf(r api.Sample) solver.Settings {
	g := r.Grid
	return solver.Settings{
		Solver: r.Solver, Order: r.Order, SecondPoint: r.SecondPoint, Variant: r.Variant,
		Grid: solver.Grid{
			Kind: g.Kind, SigmaMin: g.SigmaMin, SigmaMax: g.SigmaMax, Rho: g.Rho, T: g.T, Sigma: g.Sigma,
			Table: g.Table,
		},
		Steps: r.Steps, NFE: r.NFE, AFS: r.AFS, DenoiseToZero: r.DenoiseToZero, LowerOrderFinal: r.LowerOrderFinal,
		Corrector: r.Corrector,
		Warmup:    r.Warmup, SChurn: r.SChurn, SMin: r.SMin, SMax: r.SMax, SNoise: r.SNoise,
	}
}
