package sampling

import (
	"encoding/binary"
	"math"
	"sync"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/internal/engine/catalog"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/schedule/start"
)

// Start draws the states at which samples start from the law of the data that a schedule carries. It is safe for
// concurrent use. The state of a sample depends on its latent, its label and its plan alone.
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

// NewStart returns what starts the samples of a schedule that a request means by its field start, on the images of a
// model and with noise in the subspaces of a basis; nil for noise alone.
func NewStart(s catalog.Schedule, field string, m *catalog.Model, b *basis.Basis) (*Start, error) {
	from, err := s.StartFor(field)
	if err != nil || from == nil {
		return nil, err
	}
	h, w, c := from.Size()
	if mh, mw, mc := m.ImageSize(); h != mh || w != mw || c != mc {
		return nil, api.Errorf(api.BadRequest, "The start of the schedule %q is made for images of %d×%d×%d, those of the "+
			"model %q have %d×%d×%d", s.Name, h, w, c, m.Name, mh, mw, mc).
			WithHint("Make one of the model's own data set, or set start to standard.")
	}
	if own, of := m.Shape.Normalization, from.Settings().Units; own != nil && !own.Equal(of) {
		return nil, api.Errorf(api.BadRequest, "The start of the schedule %q is made for data with the normalization %v, "+
			"the model %q has %v", s.Name, of, m.Name, own).
			WithHint("Make one with model %q, or set start to standard.", m.Name)
	}
	return StartOf(from, b), nil
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
