package sampling

import (
	"fmt"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/input"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// Plan returns the numbers of a sampler, without a device.
func Plan(c *catalog.Catalog, req api.PlanSampler) (any, error) {
	s, m, err := planned(c, &req)
	if err != nil {
		return nil, err
	}
	req.Sample = onSampler(req.Sample, s)
	set, err := settingsOf(req.Sample).Resolve()
	if err != nil {
		return nil, err
	}
	from, err := s.StartFor(req.Start)
	if err != nil {
		return nil, err
	}
	if from != nil && req.AFS {
		return nil, errAFS()
	}
	labels, several, err := labelsOf(c, req, s, m, from)
	if err != nil {
		return nil, err
	}
	p := planning{sched: s, model: m, set: set, rows: map[int]int{}}
	for _, label := range labels {
		if err := p.add(label); err != nil {
			return nil, err
		}
	}
	out := p.reply()
	row, err := s.Row(int(labels[0]))
	if err != nil {
		return nil, err
	}
	out.Model, out.Start, out.Notes = req.Model, from.Describe(), notes(req.Sample, set, s, row, m, p.plan)
	if !several {
		out.Version, out.Label, out.PlanNumbers, out.Classes = api.PlanVersion, labels[0], out.Classes[0].PlanNumbers, nil
	}
	return out, nil
}

// planning is a plan in the making.
type planning struct {
	sched   catalog.Schedule
	model   *catalog.Model // nil for none
	set     solver.Settings
	classes []api.PlanClass
	rows    map[int]int  // their indices, by row of the schedule
	plan    *solver.Plan // one of them: all have equal structure
}

// add adds a label.
func (k *planning) add(label int32) error {
	row, err := k.sched.Row(int(label))
	if err != nil {
		return err
	}
	if i, ok := k.rows[row]; ok {
		k.classes[i].Labels = append(k.classes[i].Labels, label)
		return nil
	}
	if parts := k.sched.Complete(k.set).Parts(k.sched.J()) * (len(k.classes) + 1); k.set.NFE > api.MaxPlan/parts {
		return api.Errorf(api.TooLarge, "a plan of %d evaluations in %d subspaces of all classes is too large", k.set.NFE,
			parts).WithHint("At most %d evaluations, or fewer labels.", api.MaxPlan/parts)
	}
	var h, w, c int
	if k.model != nil {
		h, w, c = k.model.ImageSize()
	}
	p, err := k.sched.Plan(k.set, int(label), h, w, c)
	if err != nil {
		return err
	}
	if k.model != nil {
		if err := k.model.CheckPlan(p); err != nil {
			return err
		}
	}
	if err := sameStructure(k.plan, p); err != nil {
		return err
	}
	if k.plan == nil {
		k.plan = p
	}
	numbers := api.PlanNumbers{T: p.T, Init: p.Init}
	if own := p.Coordinates; own != nil {
		numbers.Coordinates = &api.PlanCoordinates{Height: own.H, Width: own.W, Channels: own.C, Axes: own.Axes[own.Row]}
	}
	for _, stage := range p.Stages {
		numbers.Stages = append(numbers.Stages, api.PlanStage(stage))
	}
	k.rows[row] = len(k.classes)
	k.classes = append(k.classes, api.PlanClass{Labels: []int32{label}, PlanNumbers: numbers})
	return nil
}

// reply returns the plan of all classes, without its start.
func (k *planning) reply() api.Plan {
	out := api.Plan{
		Format: api.PlanFormat, Version: api.PlanClassesVersion, Schedule: k.sched.Name, Label: -1,
		Family: api.Family(k.sched.Family()), Solver: k.set.Solver, Steps: k.set.Steps, NFE: k.plan.NFE,
		Predicts: api.PredictsFlow, History: k.plan.History, States: k.plan.States, Classes: k.classes,
	}
	if k.plan.Data {
		out.Predicts = api.PredictsDenoised
	}
	return out
}

// labelsOf returns the classes of a plan, and whether it is one of several classes: −1 alone where the request names
// none and none makes a difference.
func labelsOf(
	c *catalog.Catalog, req api.PlanSampler, s catalog.Schedule, m *catalog.Model, from *catalog.Start,
) (labels []int32, several bool, err error) {
	if req.Label != nil {
		labels = []int32{*req.Label}
	} else {
		labels = slices.Compact(slices.Sorted(slices.Values(req.Labels)))
	}
	unlabelled := false
	if req.Model != "" {
		if err := input.CheckLabels(labels, m.Shape.Labels); err != nil {
			return nil, false, err
		}
		unlabelled = m.Shape.Labels == 0
	}
	known := c.BasisClasses(s, m)
	for _, label := range labels {
		if known != nil && !slices.Contains(known, int(label)) {
			return nil, false, api.Errorf(api.BadRequest, "The basis %q has vectors for each class and none for label %d",
				s.Family().Basis, label).WithHint("Choose among its classes: %v.", known)
		}
	}
	differs := s.Labels() != nil || known != nil || from != nil && from.Labels() != nil && !unlabelled
	switch {
	case !differs && req.Label == nil:
		return []int32{-1}, false, nil
	case len(labels) == 0:
		return nil, false, api.Errorf(api.BadRequest, "label and labels are both missing, and the sampler differs by class").
			WithHint("Give the label of one class, or labels for one plan of several.")
	}
	return labels, req.Label == nil, nil
}

// planned finds the schedule of a plan, and the model or the network outside whose noise levels rule; nil where they
// make no difference. It fills in the model of the request.
func planned(c *catalog.Catalog, req *api.PlanSampler) (s catalog.Schedule, m *catalog.Model, err error) {
	switch {
	case req.Model != "":
		m, err = c.Model(req.Model)
	case req.SigmaMax != 0:
		m = catalog.Outside(schedule.Range{Min: req.SigmaMin, Max: req.SigmaMax})
	default:
		if m = c.ModelOf(req.Schedule); m != nil {
			req.Model = m.Name
			break
		}
		if s, err = c.ScheduleNamed(req.Schedule); err == nil {
			err = checkLevels(s, req.Grid)
		}
		return s, nil, err
	}
	if err != nil {
		return s, nil, err
	}
	if s, err = c.ScheduleFor(req.Schedule, m); err == nil {
		req.Grid, s, err = m.OnLevels(req.Grid, s)
	}
	return s, m, err
}

// checkLevels refuses a sampler that depends on the noise levels of a network, which are not known.
func checkLevels(s catalog.Schedule, g api.Grid) error {
	open := g.SigmaMin == 0 || g.SigmaMin == schedule.DefaultSigmaMin ||
		g.SigmaMax == 0 || g.SigmaMax == schedule.DefaultSigmaMax
	switch g.Kind {
	case api.GridEDM, api.GridPolynomial, api.GridLogSNR:
	default:
		open = false
	}
	// Networks that know no level as low as the schedule's are not sampled along it: see catalog.Model.OnLevels.
	const lowest = 0.99 * schedule.DefaultSigmaMin * schedule.DefaultSigmaMin
	if s.Name != "edm" && s.At(0, 0).G0() < lowest && !open {
		return nil
	}
	why := "was made for none"
	if p := s.Provenance(); p != nil && p.Model != nil {
		why = fmt.Sprintf("was made for the model %q, which is not here with the same weights", p.Model.Name)
	}
	return api.Errorf(api.BadRequest,
		"model is missing, on whose noise levels the sampler depends, and the schedule %q %s", s.Name, why).
		WithHint("Give model, or sigma_min and sigma_max, the noise levels that a network outside the server was trained on.")
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
