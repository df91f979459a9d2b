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
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// Plan returns the numbers of a sampler. It needs no device.
func (k *Sampler) Plan(_ context.Context, req api.PlanSampler) (api.Plan, error) {
	var out api.Plan
	if req.Plan.Given() {
		made, err := k.Catalog.PlanNamed(req.Plan)
		if err != nil {
			return out, err
		}
		return made.Whole()
	}
	s, m, err := resolvePlanRequest(k.Catalog, &req)
	if err != nil {
		return out, err
	}
	plans := planner{model: m, sched: s}
	if plans.set, err = settingsOf(req.Sample).Resolve(); err != nil {
		return out, err
	}
	law, err := s.StartFor(req.Start)
	if err != nil {
		return out, err
	}
	labels, several, err := labelsOf(k.Catalog, req, s, m, law)
	if err != nil {
		return out, err
	}
	classes, err := plans.classes(labels)
	if err != nil {
		return out, err
	}
	out = catalog.DescribePlan(plans.plan)
	out.Model, out.Schedule, out.Family = req.Model, s.Name, api.Family(s.Family())
	out.Solver, out.Steps, out.Notes = plans.set.Solver, plans.set.Steps, notes(req.Sample, plans.set, s, m, plans.plan)
	if law != nil {
		if out.Law, err = checkpoint.StartFile.Encode(law); err != nil {
			return out, err
		}
		out.Start = s.StartInfo()
	}
	if p := s.Provenance(); p != nil {
		out.Provenance = p
	}
	if several {
		out.Classes = classes
	} else {
		out.Label, out.PlanNumbers = labels[0], classes[0].PlanNumbers
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
		if parts := k.sched.J() * (len(out) + 1); k.set.NFE > api.MaxPlan/parts {
			return nil, api.Errorf(api.TooLarge, "a plan of %d evaluations in %d subspaces of all classes is too large",
				k.set.NFE, parts).WithHint("At most %d evaluations, or fewer labels.", api.MaxPlan/parts)
		}
		p, err := k.planFor(label)
		if err != nil {
			return nil, err
		}
		tails, err := solver.Tails(k.set, k.sched.Schedule, row)
		if err != nil {
			return nil, err
		}
		index[row] = len(out)
		out = append(out, api.PlanClass{Labels: []int32{label}, PlanNumbers: catalog.Numbers(p, tails)})
	}
	return out, nil
}

// labelsOf returns the classes of a plan, and whether it is a plan of several classes. They are −1 alone if the request
// names none and the sampler is the same for all.
func labelsOf(
	c *catalog.Catalog, req api.PlanSampler, s catalog.Schedule, m *catalog.Model, law *start.Start,
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
	withVectors := c.BasisClasses(s, m)
	for _, label := range labels {
		if withVectors != nil && !slices.Contains(withVectors, int(label)) {
			return nil, false, errNoVectors(s, label, withVectors)
		}
	}
	differs := s.Labels() != nil || withVectors != nil || law != nil && law.Labels() != nil && !unlabelled
	switch {
	case !differs && req.Label == nil:
		return []int32{-1}, false, nil
	case len(labels) == 0:
		return nil, false, api.Errorf(api.BadRequest, "label and labels are both missing, and the sampler differs by class").
			WithHint("Give the label of one class, or labels for one plan of several.")
	}
	return labels, req.Label == nil, nil
}

// resolvePlanRequest returns the schedule of a plan, and the model or the client's network whose noise levels it keeps
// to; nil if they make no difference. It fills in the request's model.
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

// checkLevels refuses a sampler that depends on the unknown noise levels of a network.
func checkLevels(s catalog.Schedule, g api.Grid) error {
	open := slices.Contains([]string{api.GridEDM, api.GridPolynomial, api.GridLogSNR}, g.Kind) &&
		(g.SigmaMin == 0 || g.SigmaMin == schedule.DefaultSigmaMin ||
			g.SigmaMax == 0 || g.SigmaMax == schedule.DefaultSigmaMax)
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
		"model is missing: the sampler depends on its noise levels, and the schedule %q %s", s.Name, why).
		WithHint("Give model, or sigma_min and sigma_max, the noise levels of a network outside the server.")
}
