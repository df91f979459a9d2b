package sampling

import (
	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
)

// planner makes the plans of a sampler, one for each row of its schedule.
type planner struct {
	model *catalog.Model // nil for none
	sched catalog.Schedule
	set   solver.Settings // resolved
	basis *basis.Basis    // of the network's noise; nil if no network is known
	start *sampler.Start  // nil for noise alone
	plans map[int]*solver.Plan
	plan  *solver.Plan // the first: all have equal structure
}

// planFor returns the plan of the schedule's row for a label.
func (k *planner) planFor(label int32) (*solver.Plan, error) {
	row, err := k.sched.Row(int(label))
	if err != nil {
		return nil, err
	}
	if k.basis != nil && !k.basis.Knows(int(label)) {
		return nil, errNoVectors(k.sched, label, k.basis.Classes())
	}
	if p, ok := k.plans[row]; ok {
		return p, nil
	}
	var h, w, c int
	if k.model != nil {
		h, w, c = k.model.ImageSize()
	}
	p, err := k.sched.Plan(k.set, int(label), h, w, c)
	if err != nil {
		return nil, err
	}
	if k.model != nil {
		if err := k.model.CheckPlan(p); err != nil {
			return nil, err
		}
	}
	if err := k.start.Check(label, p); err != nil {
		return nil, err
	}
	if k.plan == nil {
		k.plan, k.plans = p, map[int]*solver.Plan{}
	}
	if len(k.plan.Stages) != len(p.Stages) || k.plan.History != p.History {
		return nil, api.Errorf(api.BadRequest, "This grid gives the classes of this schedule different numbers of steps").
			WithHint("Sample the classes one by one, or use the grid schedule.")
	}
	k.plans[row] = p
	return p, nil
}

func errNoVectors(s catalog.Schedule, label int32, classes []int) error {
	return api.Errorf(api.BadRequest, "The basis %q has vectors for each class and none for label %d", s.Family().Basis,
		label).WithHint("Choose among its classes: %v.", classes)
}

// withScheduleSampler returns a request with a solver: its own, the one that the schedule was made for, or the default.
func withScheduleSampler(r api.Sample, s catalog.Schedule) api.Sample {
	if r.Solver != "" {
		return r
	}
	r.Solver = api.DefaultSolver
	if sampler := s.Sampler(); sampler != nil {
		if r.Solver = sampler.Solver; r.Order == 0 {
			r.Order = sampler.Order
		}
	}
	return r
}

func settingsOf(r api.Sample) solver.Settings {
	return solver.Settings{
		Solver: r.Solver, Order: r.Order, SecondPoint: r.SecondPoint, Variant: r.Variant, Grid: solver.Grid(r.Grid),
		Steps: r.Steps, NFE: r.NFE,
		DenoiseToZero: r.DenoiseToZero, LowerOrderFinal: r.LowerOrderFinal, Corrector: r.Corrector,
		Warmup: r.Warmup, SChurn: r.SChurn, SMin: r.SMin, SMax: r.SMax, SNoise: r.SNoise,
	}
}

// NewStart returns the start for samples of model m on schedule s, or nil for white noise. field is the request's
// start, and b the basis of the noise.
func NewStart(s catalog.Schedule, field string, m *catalog.Model, b *basis.Basis) (*sampler.Start, error) {
	law, err := s.StartFor(field)
	if err != nil || law == nil {
		return nil, err
	}
	h, w, c := law.Size()
	if mh, mw, mc := m.ImageSize(); h != mh || w != mw || c != mc {
		return nil, api.Errorf(api.BadRequest, "The start of the schedule %q is for images of %d×%d×%d, those of the "+
			"model %q have %d×%d×%d", s.Name, h, w, c, m.Name, mh, mw, mc).
			WithHint("Make one of the model's own data set, or set start to standard.")
	}
	if units, lawUnits := m.Shape.Normalization, law.Settings().Units; units != nil && !units.Equal(lawUnits) {
		return nil, api.Errorf(api.BadRequest, "The start of the schedule %q is made for data with the normalization %v, "+
			"the model %q has %v", s.Name, lawUnits, m.Name, units).
			WithHint("Make one with model %q, or set start to standard.", m.Name)
	}
	return sampler.StartOf(law, b), nil
}
