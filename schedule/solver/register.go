package solver

import (
	"slices"

	"github.com/anisoflight/anisoflight/internal/base/suggest"
)

// Method is a solver's row of the register: its facts, for every schedule.
type Method struct {
	Name string // on the wire
	// LeastOrder and MostOrder bound Settings.Order, and UsualOrder is its default. All are 0 for a solver of fixed order.
	LeastOrder, MostOrder, UsualOrder int
	// Accuracy returns the order of convergence of a sampler that starts exactly, by Settings.Order.
	Accuracy func(order int) int
	// History returns the number of evaluations that a combination uses, by Settings.Order.
	History func(order int) int
	// Denoised is true if combinations use denoised images, false if they use flows.
	Denoised bool
	// Churns is true if no step uses an evaluation of an earlier step, so that noise may be added between steps.
	Churns bool
	// WarmsUp is true if the first step is an Euler step because later steps use earlier evaluations.
	WarmsUp bool

	// lowersOrder is true if the default order is 2 below fewEvaluations.
	lowersOrder bool
	// endsInEuler reports whether the last step on a uniform grid is an Euler step; nil means never.
	endsInEuler func(s Settings) bool
	// evaluations is the number of evaluations of a step; 0 means one. An Euler step has one always.
	evaluations int
	// links returns the stages of one subspace. Their number, kinds and lengths depend only on the settings and the number
	// of steps.
	links func(s Settings, c *clock) []link
}

// register lists the solvers. To add one, write its file and add its row here.
var register = []Method{
	{Name: "euler", links: euler, Churns: true, Accuracy: always(1), History: always(1)},
	{
		Name: "heun", links: heun, Churns: true, Accuracy: always(2), History: always(2),
		evaluations: 2, endsInEuler: heunEndsInEuler,
	},
	{
		Name: "ab", links: adamsBashforth, LeastOrder: 1, MostOrder: 3, UsualOrder: 3, WarmsUp: true,
		Accuracy: plus(0), History: plus(0),
	},
	{
		Name: "ipndm", links: ipndm, LeastOrder: 1, MostOrder: 4, UsualOrder: 4, WarmsUp: true,
		Accuracy: atMost(2), History: plus(0), // its weights are those of uniform steps
	},
	{
		Name: "ipndm_v", links: ipndmVariable, LeastOrder: 1, MostOrder: 4, UsualOrder: 4, WarmsUp: true,
		Accuracy: plus(0), History: plus(0),
	},
	{Name: "dpmpp2m", links: dpmpp2m, Denoised: true, WarmsUp: true, Accuracy: always(2), History: always(2)},
	{
		Name: "dpmpp3m", links: dpmpp3m, Denoised: true, LeastOrder: 2, MostOrder: 3, UsualOrder: 3, WarmsUp: true,
		lowersOrder: true, Accuracy: atMost(2), History: plus(0),
	},
	{
		Name: "dpmpp3m_taylor", links: dpmpp3mTaylor, Denoised: true, LeastOrder: 2, MostOrder: 3, UsualOrder: 3,
		WarmsUp: true, lowersOrder: true, Accuracy: plus(0), History: plus(0),
	},
	{
		Name: "unipc", links: unipc, Denoised: true, LeastOrder: 1, MostOrder: 3, UsualOrder: 3, lowersOrder: true,
		Accuracy: plus(1), History: plus(1), // its corrector adds one
	},
	{
		Name: "deis", links: deis, LeastOrder: 1, MostOrder: 3, UsualOrder: 3, WarmsUp: true,
		Accuracy: plus(1), History: plus(1), // its order is the degree of a polynomial
	},
}

func always(n int) func(int) int          { return func(int) int { return n } }
func plus(n int) func(int) int            { return func(order int) int { return order + n } }
func atMost(n int) func(int) int          { return func(order int) int { return min(order, n) } }
func (m Method) takesOrder() bool         { return m.MostOrder > 0 }
func (m Method) warmsUpAt(order int) bool { return m.WarmsUp && !(m.takesOrder() && order == 1) }

// Methods returns the register's rows.
func Methods() []Method { return slices.Clone(register) }

// Names returns the names of the solvers in the order of the register.
func Names() []string { return NamesOf(func(Method) bool { return true }) }

// NamesOf returns the names of the solvers for which a fact holds.
func NamesOf(holds func(Method) bool) []string {
	var names []string
	for _, m := range register {
		if holds(m) {
			names = append(names, m.Name)
		}
	}
	return names
}

// MethodNamed returns the row of a solver, or an *Error for an unknown name.
func MethodNamed(name string) (Method, error) {
	for _, m := range register {
		if m.Name == name {
			return m, nil
		}
	}
	return Method{}, failf("solver", "%s", suggest.OneOf(name, Names()))
}

// method returns the row of resolved settings.
func (s Settings) method() Method {
	m, err := MethodNamed(s.Solver)
	if err != nil {
		panic(err) // the settings are not resolved
	}
	return m
}

// fewEvaluations is the number of evaluations from which the default order of some solvers is 3. On networks, their
// order 3 is worse with nine evaluations than with five; order 2 improves with each evaluation.
const fewEvaluations = 13

// cost returns the number of evaluations of n steps.
func (m Method) cost(n int, eulerEnd bool) int {
	each := max(1, m.evaluations)
	if eulerEnd {
		return each*(n-1) + 1
	}
	return each * n
}
