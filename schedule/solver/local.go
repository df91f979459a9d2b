package solver

import "github.com/anisoflight/anisoflight/schedule"

// Local returns the stages of one step of a longer sampler, from times[len−2] to
// times[len−1], on the paths of one row. The decreasing times before are the nodes that
// a multistep method looks back on: all of them, or the last MaxHistory. step is the
// number of the step in the sampler of resolved settings, which decides on its order.
// The corrections of unipc belong to the step behind and are left out. Errors are *Error.
func Local(s Settings, paths []*schedule.Path, times []float64, step int) ([]Stage, error) {
	m := methods[s.Solver]
	chain := m.links
	if m.local != nil {
		chain = m.local
	}
	before := len(times) - 2
	var stages []Stage
	for j, path := range paths {
		c := newClock(path, times, s.eulerEnd())
		c.after = s.Steps - 1 - step
		if err := c.check(); err != nil {
			return nil, err
		}
		links := chain(s, c)
		for i, l := range links {
			if before > 0 && l.step == before-1 {
				links = links[i+1:]
				break
			}
		}
		if j == 0 {
			stages = make([]Stage, len(links))
		}
		for i, l := range links {
			st := &stages[i]
			st.Time, st.Step = l.t, l.step
			st.G, st.Alpha, st.Beta = append(st.G, l.g), append(st.Alpha, l.alpha), append(st.Beta, l.beta)
		}
	}
	return stages, nil
}
