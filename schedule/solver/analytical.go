package solver

import "math"

// Analytical returns a plan without its first evaluation, which is that of data about 0 of a variance instead, D = q x
// with q = variance/(variance + σ²): the analytical first step of Dockhorn et al. (arXiv:2210.05475). The state after
// it is noise of another deviation, at which the plan begins; what later steps take of the first evaluation they take
// of that state. The second result has the tails of the plan, given those of p. It returns nil for a plan in several
// parts, of one step, with fresh noise, or whose first step has several evaluations.
func Analytical(p *Plan, tails [][]Stage, variance float64) (*Plan, [][]Stage) {
	first := p.Stages[0]
	if len(p.Init) != 1 || p.Coordinates != nil || p.States || first.Step != 0 || first.Noise != nil || p.Steps() < 2 {
		return nil, nil
	}
	sigma := math.Sqrt(first.G[0])
	e := variance / (variance + first.G[0]) // E_0 over x_0
	if !p.Data {
		e = (e - 1) / sigma
	}
	c := first.Alpha[0] + first.Beta[0][0]*e
	out := &Plan{
		Init: []float64{c * p.Init[0]}, NFE: p.NFE - 1, Data: p.Data, States: true, T: p.T[1:],
	}
	for i, st := range p.Stages[1:] {
		if st.Noise != nil {
			return nil, nil
		}
		st = withStates(st)
		st.Step = max(-1, st.Step-1)
		if beta := p.Stages[1+i].Beta[0]; len(beta) > i+1 { // with E_0, after the i + 1 evaluations since
			w := beta[i+1] * e / c
			st.Beta[0] = st.Beta[0][:2*i+1]
			if i == 0 {
				st.Alpha = []float64{st.Alpha[0] + w}
			} else {
				st.Beta[0] = append(st.Beta[0], w)
			}
		}
		out.Stages, out.History = append(out.Stages, st), max(out.History, len(st.Beta[0]))
	}
	var own [][]Stage
	for _, tail := range tails[min(1, len(tails)):] {
		stages := make([]Stage, len(tail))
		for i, st := range tail {
			stages[i] = withStates(st)
			out.History = max(out.History, len(stages[i].Beta[0]))
		}
		own = append(own, stages)
	}
	return out, own
}

// withStates returns a stage in one part for a history that holds states as well, of which it uses none.
func withStates(st Stage) Stage {
	beta := make([]float64, 2*len(st.Beta[0])-1)
	for i, v := range st.Beta[0] {
		beta[2*i] = v
	}
	st.Beta = [][]float64{beta}
	return st
}
