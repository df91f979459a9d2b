package solver

import (
	"maps"
	"slices"

	"github.com/anisoflight/anisoflight/base/suggest"
)

// method describes a solver: what it may be asked for, what a step costs, and its
// coefficients.
type method struct {
	// least, most and usual bound the order and give its default; all 0 where the
	// solver has an order of its own.
	least, most, usual int
	// falters is true where the default is order 2 below fewEvaluations.
	falters bool
	// data is true where the history holds denoised images.
	data bool
	// churns is true where a step needs no evaluation of earlier ones, so that noise
	// may be added between steps.
	churns bool
	// warms is true where the first step is an Euler step because later ones look back.
	warms bool
	// ends reports whether the last step on a uniform grid is an Euler step; nil
	// means never.
	ends func(s Settings) bool
	// evaluations returns the number of evaluations of n steps, whose last may be
	// an Euler step; nil means one for each step.
	evaluations func(n int, eulerEnd bool) int
	// links returns the stages of one subspace. Their number, kinds and lengths
	// depend on the settings and the number of steps alone. It is nil where coordinates
	// smaller than subspaces have steps of their own.
	links func(s Settings, c *clock) []link
}

// methods is the register of solvers by their wire names.
var methods = map[string]method{
	"euler":          {links: euler, churns: true},
	"heun":           {links: heun, evaluations: heunEvaluations, ends: heunEnds, churns: true},
	"ab":             {links: adamsBashforth, warms: true, least: 1, most: 3, usual: 3},
	"ipndm":          {links: ipndm, warms: true, least: 1, most: 4, usual: 4},
	"ipndm_v":        {links: ipndmVariable, warms: true, least: 1, most: 4, usual: 4},
	"dpmpp2m":        {links: dpmpp2m, warms: true, data: true},
	"dpmpp3m":        {links: dpmpp3m, warms: true, data: true, least: 2, most: 3, usual: 3, falters: true},
	"dpmpp3m_taylor": {links: dpmpp3mTaylor, warms: true, data: true, least: 2, most: 3, usual: 3, falters: true},
	"unipc":          {links: unipc, data: true, least: 1, most: 3, usual: 3, falters: true},
	LocalName:        {data: true, least: 1, most: 3, usual: 2},
	FittedName:       {data: true},
	"deis":           {links: deis, warms: true, least: 1, most: 3, usual: 3},
}

// Names returns the solvers' names in alphabetical order.
func Names() []string { return slices.Sorted(maps.Keys(methods)) }

func methodNamed(name string) (method, error) {
	m, ok := methods[name]
	if !ok {
		return method{}, failf("solver", "%s", suggest.OneOf(name, Names()))
	}
	return m, nil
}

// fewEvaluations is from where the default of solvers that falter is order 3. On networks their order 3
// does worse with nine evaluations than with five; their order 2 gets better with each.
const fewEvaluations = 13

// defaultOrder returns the order of a plan of nfe evaluations where the settings name none.
func (m method) defaultOrder(nfe int) int {
	if m.falters && nfe < fewEvaluations {
		return 2
	}
	return m.usual
}

// cost returns the number of evaluations of n steps.
func (m method) cost(n int, eulerEnd, afs bool) int {
	cost := n
	if m.evaluations != nil {
		cost = m.evaluations(n, eulerEnd)
	}
	if afs {
		cost--
	}
	return cost
}
