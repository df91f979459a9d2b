package solver

import (
	"fmt"
	"math"

	"github.com/anisoflight/anisoflight/schedule/local"
)

// MaxSteps bounds a plan's length.
const MaxSteps = 100_000

// Settings choose a sampler. The zero value of a field means its default.
type Settings struct {
	// Solver is one of Names; "heun" by default.
	Solver string
	// Order of ab (1–3, default 3), ipndm and ipndm_v (1–4, default 4), deis (1–3, default 3), unipc (1–3), dpmpp3m and
	// dpmpp3m_taylor (2–3; of all three default 3, and 2 below 13 evaluations), and local (1–3, default 2). Other solvers
	// have their own and take none.
	Order int
	// SecondPoint of heun: Midpoint (in t, the default) or Endpoint. No effect on other solvers.
	SecondPoint string
	// Variant of unipc: BH2 (default) or BH1. No effect on other solvers.
	Variant string
	// Grid places the steps; uniform in schedule time by default.
	Grid Grid
	// Steps is the number of solver steps; NFE the number of network evaluations to stay within, by as many steps as fit.
	// One of the two, and neither for an explicit list.
	Steps, NFE int
	// DenoiseToZero returns the denoised image of the last evaluation.
	DenoiseToZero bool
	// LowerOrderFinal lowers the order of dpmpp*, unipc and local towards the end; nil means true. No effect on other
	// solvers.
	LowerOrderFinal *bool
	// Warmup is the first step of ab, ipndm, ipndm_v, dpmpp* and deis: WarmupEuler (default) or WarmupHeun. No effect on
	// the number of evaluations.
	Warmup string
	// Corrector of local: each step but the last is corrected by the evaluation that follows it, as in unipc, which has
	// one of its own. No effect on other solvers.
	Corrector bool
	// Statistics are those of the denoiser, which local needs, and StatisticsRow the row of them that a plan is for;
	// Fitted are the coefficients of fitted. No effect on others.
	Statistics    *local.Statistics
	StatisticsRow int
	Fitted        *Fitted
	// SChurn, SMin, SMax and SNoise are EDM's S_churn, S_min, S_max and S_noise: how much noise euler and heun replace
	// while they sample, between which noise levels, and its standard deviation. By default 0, which is no churn, 0, no
	// bound, and 1.
	SChurn, SMin, SMax, SNoise float64
}

// Resolve fills in the defaults and computes Steps from NFE, then NFE from Steps: the resolved NFE is what the plan
// will cost. Resolving twice changes nothing. EDM's noise levels stay 0 where they follow the schedule. Errors are
// *Error.
func (s Settings) Resolve() (Settings, error) {
	orDefault(&s.Solver, "heun")
	orDefault(&s.SecondPoint, Midpoint)
	orDefault(&s.Variant, BH2)
	if s.LowerOrderFinal == nil {
		yes := true
		s.LowerOrderFinal = &yes
	}
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
	if s.SecondPoint != Midpoint && s.SecondPoint != Endpoint {
		return s, failf("second_point", "must be %s or %s, got %q", Midpoint, Endpoint, s.SecondPoint)
	}
	if s.Variant != BH1 && s.Variant != BH2 {
		return s, failf("variant", "must be %s or %s, got %q", BH1, BH2, s.Variant)
	}
	if err := s.resolveWarmup(m); err != nil {
		return s, err
	}
	if err := s.resolveChurn(m); err != nil {
		return s, err
	}
	if s.Grid, err = s.Grid.resolve(); err != nil {
		return s, err
	}
	if s, err = s.count(m); err != nil {
		return s, err
	}
	if s.Order == 0 {
		s.Order = m.defaultOrder(s.NFE)
	}
	return s, nil
}

// Parts returns the number of parts in which the stages combine on a schedule of J subspaces.
func (s Settings) Parts(j int) int {
	if m, err := MethodNamed(s.Solver); err == nil && m.ByCoordinate && s.Statistics != nil {
		return s.Statistics.Size()
	}
	return j
}

// LowersOrder reports whether resolved settings have order 2 where the solver's default is order 2 for so few
// evaluations, and 3 for more.
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

// count settles Steps and NFE.
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

// resolveWarmup checks the name and that there is a first step to replace.
func (s *Settings) resolveWarmup(m Method) error {
	orDefault(&s.Warmup, WarmupEuler)
	switch {
	case s.Warmup != WarmupEuler && s.Warmup != WarmupHeun:
		return failf("warmup", "must be %s or %s, got %q", WarmupEuler, WarmupHeun, s.Warmup)
	case s.Warmup == WarmupHeun && !m.starts(s.Order):
		return failf("warmup", "must be left out with %s of this order, which starts as it goes on", s.Solver)
	}
	return nil
}

// resolveChurn checks EDM's numbers and fills in S_noise.
func (s *Settings) resolveChurn(m Method) error {
	for _, v := range []struct {
		field string
		value float64
	}{{"S_churn", s.SChurn}, {"S_min", s.SMin}, {"S_max", s.SMax}, {"S_noise", s.SNoise}} {
		if !(v.value >= 0) || math.IsInf(v.value, 1) {
			return failf(v.field, "must be finite and at least 0, got %v", v.value)
		}
	}
	if s.SNoise == 0 {
		s.SNoise = 1
	}
	switch {
	case s.SChurn > 0 && !m.Churns:
		return failf("S_churn", "must be 0 with solver %s, whose past evaluations fresh noise makes stale; choose %s",
			s.Solver, alternatives(NamesOf(func(m Method) bool { return m.Churns })))
	case s.SMax > 0 && s.SMin > s.SMax:
		return failf("S_min", "must not be above S_max %v, got %v", s.SMax, s.SMin)
	}
	return nil
}

// Error reports which field of the settings is wrong.
type Error struct {
	Field    string // wire name of the field: solver, order, grid, steps, nfe, …
	Msg      string // goes on after the field's name: "must be at least 1, got 0"
	TooLarge bool   // a well-formed number beyond what can be served
}

// Error implements the error interface.
func (e *Error) Error() string { return e.Field + " " + e.Msg }

func failf(field, format string, args ...any) *Error {
	return &Error{Field: field, Msg: fmt.Sprintf(format, args...)}
}

func orDefault(s *string, v string) {
	if *s == "" {
		*s = v
	}
}
