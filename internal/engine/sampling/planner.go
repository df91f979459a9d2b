package sampling

import (
	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/internal/sampler"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/start"
)

// planner makes the plans of a sampler, one for each row of its schedule.
type planner struct {
	model *catalog.Model   // nil for none
	made  *catalog.Plan    // in place of the next two; nil for none
	sched catalog.Schedule // its name and basis alone if there is a plan
	set   solver.Settings  // resolved
	basis *basis.Basis     // of the network's noise; nil if no network is known
	start *sampler.Start   // nil for noise alone
	plans map[int]*solver.Plan
	plan  *solver.Plan // the first: all have equal structure
}

// planFor returns the plan for a label.
func (k *planner) planFor(label int32) (*solver.Plan, error) {
	row, err := k.row(label)
	if err != nil {
		return nil, err
	}
	if k.basis != nil && !k.basis.Knows(int(label)) {
		return nil, errNoVectors(k.sched, label, k.basis.Classes())
	}
	if p, ok := k.plans[row]; ok {
		return p, nil
	}
	var p *solver.Plan
	if k.made != nil {
		p, _, err = k.made.For(label)
	} else {
		p, err = solver.New(k.set, k.sched.Schedule, row)
	}
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

// row returns a number that labels with the same plan share: the schedule's row.
func (k *planner) row(label int32) (int, error) {
	if k.made != nil {
		_, row, err := k.made.For(label)
		return row, err
	}
	return k.sched.Row(int(label))
}

func errNoVectors(s catalog.Schedule, label int32, classes []int) error {
	return api.Errorf(api.BadRequest, "The basis %q has vectors for each class and none for label %d", s.Family().Basis,
		label).WithHint("Choose among its classes: %v.", classes)
}

func settingsOf(r api.Sample) solver.Settings {
	return solver.Settings{
		Solver: r.Solver, Order: r.Order, SecondPoint: r.SecondPoint, Variant: r.Variant, Grid: solver.Grid(r.Grid),
		Steps: r.Steps, NFE: r.NFE, DenoiseToZero: r.DenoiseToZero, LowerOrderFinal: r.LowerOrderFinal,
		Warmup: r.Warmup, SChurn: r.SChurn, SMin: r.SMin, SMax: r.SMax, SNoise: r.SNoise,
	}
}

// newStart returns the start for samples of model m by a law, which may be nil for white noise. of names what has the
// law, and b is the basis of the noise.
func newStart(law *start.Start, of string, m *catalog.Model, b *basis.Basis) (*sampler.Start, error) {
	if law == nil {
		return nil, nil
	}
	h, w, c := law.Size()
	if mh, mw, mc := m.ImageSize(); h != mh || w != mw || c != mc {
		return nil, api.Errorf(api.BadRequest, "The start of the %s is for images of %d×%d×%d, those of the "+
			"model %q have %d×%d×%d", of, h, w, c, m.Name, mh, mw, mc).
			WithHint("Make one of the model's own data set, or set start to standard.")
	}
	if units, lawUnits := m.Shape.Normalization, law.Settings().Units; units != nil && !units.Equal(lawUnits) {
		return nil, api.Errorf(api.BadRequest, "The start of the %s is made for data with the normalization %v, "+
			"the model %q has %v", of, lawUnits, m.Name, units).
			WithHint("Make one with model %q, or set start to standard.", m.Name)
	}
	return sampler.StartOf(law, b), nil
}
