package sampling

import (
	"context"
	"fmt"
	"slices"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/engine/tables"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/start"
)

// Plan returns the numbers of a sampler, without a device.
func (k *Sampler) Plan(_ context.Context, req api.PlanSampler) (api.Plan, error) {
	var out api.Plan
	s, m, err := resolvePlanRequest(k.Catalog, &req)
	if err != nil {
		return out, err
	}
	req.Sample = withScheduleSampler(req.Sample, s)
	plans := newPlanner(m)
	plans.sched = s
	if plans.set, err = settingsOf(req.Sample).Resolve(); err != nil {
		return out, err
	}
	from, err := s.StartFor(req.Start)
	if err != nil {
		return out, err
	}
	labels, several, err := labelsOf(k.Catalog, req, s, m, from)
	if err != nil {
		return out, err
	}
	classes, err := plans.classes(labels)
	if err != nil {
		return out, err
	}
	first := plans.plan
	out = api.Plan{
		Format: api.PlanFormat, Version: api.PlanVersion, Model: req.Model, Schedule: s.Name, Label: -1,
		Family: api.Family(s.Family()), Solver: plans.set.Solver, Steps: plans.set.Steps, NFE: first.NFE,
		Predicts: api.PredictsFlow, History: first.History, States: first.States, Classes: classes,
		Notes: notes(req.Sample, plans.set, s, m, first),
	}
	if first.Data {
		out.Predicts = api.PredictsDenoised
	}
	if from != nil {
		out.Start = s.StartInfo()
	}
	if p := s.Provenance(); p != nil {
		out.Provenance = p
	}
	if !several {
		out.Label, out.PlanNumbers, out.Classes = labels[0], classes[0].PlanNumbers, nil
	}
	return out, nil
}

// classes returns the numbers of the plans of labels. Labels of one row of the schedule share theirs.
func (k *planner) classes(labels []int32) (out []api.PlanClass, err error) {
	index := map[int]int{} // by row of the schedule
	for _, label := range labels {
		row, err := k.sched.Row(int(label))
		if err != nil {
			return nil, err
		}
		if i, ok := index[row]; ok {
			out[i].Labels = append(out[i].Labels, label)
			continue
		}
		if parts := k.sched.Complete(k.set).Parts(k.sched.J()) * (len(out) + 1); k.set.NFE > api.MaxPlan/parts {
			return nil, api.Errorf(api.TooLarge, "a plan of %d evaluations in %d subspaces of all classes is too large",
				k.set.NFE, parts).WithHint("At most %d evaluations, or fewer labels.", api.MaxPlan/parts)
		}
		p, err := k.planFor(label)
		if err != nil {
			return nil, err
		}
		set := k.sched.Complete(k.set)
		set.StatisticsRow = row
		tails, err := solver.Tails(set, k.sched.Schedule, row)
		if err != nil {
			return nil, err
		}
		index[row] = len(out)
		out = append(out, api.PlanClass{Labels: []int32{label}, PlanNumbers: Numbers(p, tails)})
	}
	return out, nil
}

// Numbers returns those of a plan with its tails, which may be nil.
func Numbers(p *solver.Plan, tails [][]solver.Stage) api.PlanNumbers {
	out := api.PlanNumbers{T: p.T, Init: p.Init}
	if own := p.Coordinates; own != nil {
		out.Coordinates = &api.PlanCoordinates{
			Height: own.H, Width: own.W, Channels: own.C, Bands: own.N, Axes: own.Axes[own.Row],
		}
	}
	for _, stage := range p.Stages {
		out.Stages = append(out.Stages, api.PlanStage(stage))
	}
	for _, tail := range tails {
		stages := make([]api.PlanTail, len(tail))
		for i, stage := range tail {
			stages[i] = api.PlanTail{Alpha: stage.Alpha, Beta: stage.Beta}
		}
		out.Tails = append(out.Tails, stages)
	}
	return out
}

// labelsOf returns the classes of a plan, and whether it is one of several classes: −1 alone if the request names
// none and none makes a difference.
func labelsOf(
	c *catalog.Catalog, req api.PlanSampler, s catalog.Schedule, m *catalog.Model, from *start.Start,
) (labels []int32, several bool, err error) {
	if req.Label != nil {
		labels = []int32{*req.Label}
	} else {
		labels = slices.Compact(slices.Sorted(slices.Values(req.Labels)))
	}
	unlabelled := false
	if req.Model != "" {
		if err := tables.CheckLabels(labels, m.Shape.Labels); err != nil {
			return nil, false, err
		}
		unlabelled = m.Shape.Labels == 0
	}
	known := c.BasisClasses(s, m)
	for _, label := range labels {
		if known != nil && !slices.Contains(known, int(label)) {
			return nil, false, errNoVectors(s, label, known)
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

// resolvePlanRequest finds the schedule of a plan, and the model or the network outside whose noise levels rule; nil if they
// make no difference. It fills in the model of the request.
func resolvePlanRequest(c *catalog.Catalog, req *api.PlanSampler) (s catalog.Schedule, m *catalog.Model, err error) {
	switch {
	case req.Model != "":
		m, err = c.Model(req.Model)
	case req.SigmaMax != 0:
		levels := schedule.Range{Min: req.SigmaMin, Max: req.SigmaMax} // of a network outside the server
		m = &catalog.Model{Name: "outside the server", Shape: kernels.Shape{Range: levels}}
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
