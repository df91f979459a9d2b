package device

import "errors"

// Lowered is a program as text for another compiler.
type Lowered struct {
	Cost

	Key  string
	Text []byte // StableHLO as a CUDA plugin would get it
}

// lower draws the program's graph and returns it as text.
func (p *Program) lower() (Lowered, error) {
	l := Lowered{Key: p.key}
	var err error
	l.Text = p.dev.plugin.Lower(p.module(), func(module string) {
		g, nodes, failed := draw(p.dev.backend, p, module)
		if err = failed; err != nil {
			return
		}
		defer g.Finalize()
		l.Cost = Cost{FLOPs: countFLOPs(nodes), Memory: estimateMemory(nodes, CUDA)}
		err = finish(p, g, nodes)
	})
	if l.Text != nil {
		return l, nil // the plugin was not given it
	}
	if err == nil {
		err = &ProgramError{Key: p.key, Phase: "compile", Err: errors.New("no text came from the graph")}
	}
	return l, err
}
