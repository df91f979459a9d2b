package solver

import (
	"fmt"
	"strings"

	"github.com/anisoflight/anisoflight/internal/base/setting"
)

// MaxSteps bounds a plan's length.
const MaxSteps = 100_000

// Settings choose a sampler. The zero value of a field means its default.
type Settings struct {
	// Solver is one of Names.
	Solver string `default:"heun"`
	// Order of ab, deis and unipc (1–3), ipndm and ipndm_v (1–4), dpmpp3m and dpmpp3m_taylor (2–3). The default is the
	// highest, except 2 for unipc, dpmpp3m and dpmpp3m_taylor below 13 evaluations. Other solvers have a fixed order, and
	// Order must be 0.
	Order int
	// SecondPoint of heun: Midpoint (in t) or Endpoint. No effect on other solvers.
	SecondPoint string `json:"second_point" default:"midpoint" oneof:"midpoint endpoint"`
	// Variant of unipc: "bh2" or BH1. No effect on other solvers.
	Variant string `json:"variant" default:"bh2" oneof:"bh1 bh2"`
	// Grid places the steps; uniform in schedule time by default.
	Grid Grid
	// Steps is the number of solver steps. NFE is the largest number of network evaluations: the sampler takes as many
	// steps as fit. One of the two must be given, and neither for an explicit list.
	Steps, NFE int
	// DenoiseToZero returns the denoised image of the last evaluation.
	DenoiseToZero bool
	// LowerOrderFinal lowers the order of dpmpp* and unipc towards the end. No effect on other solvers.
	LowerOrderFinal *bool `default:"true"`
	// Warmup is the first step of ab, ipndm, ipndm_v, dpmpp* and deis: WarmupEuler or WarmupHeun. It has no effect on the
	// number of evaluations.
	Warmup string `json:"warmup" default:"euler" oneof:"euler heun"`
	// SChurn, SMin, SMax and SNoise are EDM's S_churn, S_min, S_max and S_noise for euler and heun: how much noise is
	// replaced, between which noise levels, and its standard deviation. SChurn 0 adds none, and SMax 0 is no bound.
	SChurn float64 `json:"S_churn" min:"0"`
	SMin   float64 `json:"S_min" min:"0"`
	SMax   float64 `json:"S_max" min:"0"`
	SNoise float64 `json:"S_noise" min:"0" default:"1"`
}

// Resolve sets the defaults, computes Steps from NFE, and then NFE from Steps: the number of evaluations of the plan.
// Resolving twice changes nothing. Grid levels of 0, which depend on the schedule, stay 0. Errors are *Error.
func (s Settings) Resolve() (Settings, error) {
	setting.SetDefaults(&s)
	m, err := MethodNamed(s.Solver)
	if err != nil {
		return s, err
	}
	switch {
	case s.Order == 0: // settled below: it depends on the number of evaluations
	case !m.takesOrder():
		return s, failf("order", "must be left out with solver %s, which has an order of its own", s.Solver)
	case s.Order < m.LeastOrder || s.Order > m.MostOrder:
		return s, failf("order", "must lie in %d … %d with solver %s, got %d", m.LeastOrder, m.MostOrder, s.Solver, s.Order)
	}
	if err := setting.Check(&s, nil); err != nil {
		return s, err
	}
	switch {
	case s.Warmup == WarmupHeun && !m.warmsUpAt(s.Order):
		return s, failf("warmup", "must be left out with %s of this order, which starts as it goes on", s.Solver)
	case s.SChurn > 0 && !m.Churns:
		return s, failf("S_churn", "must be 0 with solver %s, whose past evaluations fresh noise makes stale; choose %s",
			s.Solver, strings.Join(NamesOf(func(m Method) bool { return m.Churns }), " or "))
	case s.SMax > 0 && s.SMin > s.SMax:
		return s, failf("S_min", "must not be above S_max %v, got %v", s.SMax, s.SMin)
	}
	if s.Grid, err = s.Grid.resolve(); err != nil {
		return s, err
	}
	if s, err = s.count(m); err != nil {
		return s, err
	}
	if s.Order == 0 {
		s.Order = m.UsualOrder
		if m.lowersOrder && s.NFE < fewEvaluations {
			s.Order = 2
		}
	}
	return s, nil
}

// LowersOrder reports whether resolved settings have order 2 in a solver whose default order is 3 for more evaluations.
func (s Settings) LowersOrder() bool {
	return s.method().lowersOrder && s.Order == 2 && s.NFE < fewEvaluations
}

// eulerEnd reports whether the last step of resolved settings is an Euler step.
func (s Settings) eulerEnd() bool {
	switch s.Grid.Kind {
	case GridSchedule:
		m := s.method()
		return m.endsInEuler != nil && m.endsInEuler(s)
	case GridEDM, GridLogSNR, GridTable:
		return true
	case GridPolynomial:
		return false
	}
	list := s.Grid.list()
	return len(list) > 0 && list[len(list)-1] <= 0
}

// count sets Steps and NFE.
func (s Settings) count(m Method) (Settings, error) {
	cost := func(n int) int { return m.cost(n, s.eulerEnd()) }
	switch listed := len(s.Grid.list()) - 1; {
	case s.Steps < 0:
		return s, failf("steps", "must be at least 1, got %d", s.Steps)
	case s.NFE < 0:
		return s, failf("nfe", "must be at least 1, got %d", s.NFE)
	case listed > 0 && s.Steps > 0 && s.Steps != listed:
		return s, failf("steps", "must be left out or be the %d steps of the explicit grid, got %d", listed, s.Steps)
	case listed > 0:
		s.Steps = listed
	case s.Steps == 0 && s.NFE == 0:
		return s, failf("steps", "or nfe must be given")
	case s.Steps == 0:
		nfe := s.NFE
		s.Steps, s.NFE = min(nfe, MaxSteps+1), 0 // a step costs at least one evaluation
		for s.Steps > 0 && cost(s.Steps) > nfe {
			s.Steps--
		}
		if s.Steps < 1 {
			return s, failf("nfe", "must be at least %d, one step of %s on this grid, got %d", cost(1), s.Solver, nfe)
		}
		if s.Steps > MaxSteps {
			return s, &Error{Field: "nfe", Msg: fmt.Sprintf("must be at most what %d steps of %s take, got %d", MaxSteps,
				s.Solver, nfe), TooLarge: true}
		}
	}
	if s.Steps > MaxSteps {
		return s, &Error{Field: "steps", Msg: fmt.Sprintf("must be at most %d, got %d", MaxSteps, s.Steps), TooLarge: true}
	}
	total := cost(s.Steps)
	if s.NFE > 0 && s.NFE != total {
		return s, failf("nfe", "must be left out or be the %d evaluations of %d steps, got %d", total, s.Steps, s.NFE)
	}
	s.NFE = total
	return s, nil
}

// Error reports which field of the settings is wrong.
type Error = setting.Error

func failf(field, format string, args ...any) *Error {
	return &Error{Field: field, Msg: fmt.Sprintf(format, args...)}
}
