package sampler

import (
	"encoding/binary"
	"math"
	"sync"

	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/start"
)

// Start draws the states at which samples start from the law of the data that a schedule carries. A nil Start starts
// from noise alone. It is safe for concurrent use. The state of a sample depends on its latent, its label and its plan
// alone.
type Start struct {
	from  *start.Start
	basis *basis.Basis
	alike bool // for all labels

	mu    sync.Mutex
	roots map[key]*start.Root
}

// key is all that a root depends on.
type key struct {
	label int
	noise string
}

// StartOf returns what draws from a start, with noise in the subspaces of a basis; nil for nil.
func StartOf(from *start.Start, b *basis.Basis) *Start {
	if from == nil {
		return nil
	}
	return &Start{
		from: from, basis: b, alike: from.Labels() == nil && !b.PerClass(), roots: map[key]*start.Root{},
	}
}

// Check returns an error for a plan that the start does not serve. A nil Start serves all.
func (m *Start) Check(label int32, p *solver.Plan) error {
	if m == nil {
		return nil
	}
	return m.from.Law(int(label)).Fits(m.basis, variances(p))
}

// Draw turns a latent into the state at which its plan starts, in place.
func (m *Start) Draw(label int32, p *solver.Plan, latent []float32) error {
	root, err := m.root(int(label), p)
	if err == nil {
		root.DrawFloat32(latent)
	}
	return err
}

func (m *Start) root(label int, p *solver.Plan) (*start.Root, error) {
	if m.alike {
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
	root, err := m.from.Law(label).Root(m.basis, label, variances(p))
	if err == nil {
		m.roots[k] = root
	}
	return root, err
}

// variances returns the noise at which a plan starts.
func variances(p *solver.Plan) []float64 {
	g := make([]float64, len(p.Init))
	for j, v := range p.Init {
		g[j] = v * v
	}
	return g
}
