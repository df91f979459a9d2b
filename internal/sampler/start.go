package sampler

import (
	"encoding/binary"
	"math"
	"sync"

	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/start"
)

// Start draws initial states from the law of the data that a schedule carries; nil starts from noise alone. The state
// of a sample depends on its latent, its label and its plan alone. A Start is safe for concurrent use.
type Start struct {
	start  *start.Start
	basis  *basis.Basis
	shared bool // one law and one basis for all labels

	mu    sync.Mutex
	roots map[key]*start.Root
}

// key is what a root depends on.
type key struct {
	label int
	noise string
}

// StartOf returns the Start that draws from s with noise in the subspaces of b, or nil if s is nil.
func StartOf(s *start.Start, b *basis.Basis) *Start {
	if s == nil {
		return nil
	}
	return &Start{
		start: s, basis: b, shared: s.Labels() == nil && !b.PerClass(), roots: map[key]*start.Root{},
	}
}

// Check returns an error if the start cannot draw the initial states of a plan. A nil Start can draw all.
func (m *Start) Check(label int32, p *solver.Plan) error {
	if m == nil {
		return nil
	}
	return m.start.Law(int(label)).Fits(m.basis, variances(p))
}

// Draw replaces a latent by the initial state of its plan.
func (m *Start) Draw(label int32, p *solver.Plan, latent []float32) error {
	root, err := m.root(int(label), p)
	if err == nil {
		root.DrawFloat32(latent)
	}
	return err
}

func (m *Start) root(label int, p *solver.Plan) (*start.Root, error) {
	if m.shared {
		label = start.Shared
	}
	var noise []byte
	for _, v := range p.Init {
		noise = binary.LittleEndian.AppendUint64(noise, math.Float64bits(v))
	}
	k := key{label, string(noise)}
	m.mu.Lock()
	defer m.mu.Unlock()
	if root, ok := m.roots[k]; ok {
		return root, nil
	}
	root, err := m.start.Law(label).Root(m.basis, label, variances(p))
	if err == nil {
		m.roots[k] = root
	}
	return root, err
}

// variances returns the noise variances [J] at which a plan starts.
func variances(p *solver.Plan) []float64 {
	g := make([]float64, len(p.Init))
	for j, v := range p.Init {
		g[j] = v * v
	}
	return g
}
