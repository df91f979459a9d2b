package engine

import (
	"sync"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/device"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/train/checkpoint"
	"github.com/anisoflight/anisoflight/train/data/pixels"
)

// model is one loaded model folder: immutable but for its count of users. The catalogue holds it once and every request
// that works with it once more; the last to let go frees its weights.
type model struct {
	name    string
	path    string // of its folder, relative to the models folder
	version int    // counts what was saved under this name since the start
	hash    string // of its weights

	asked, precision kernels.Precision // that it was loaded for, and that its network has: an analytic one's is float32

	dev     *device.Device
	stored  *checkpoint.Model // with the values of a mixture, whose axes decide on which bases it can be; a UNet's are on the device alone
	shape   kernels.Shape
	weights *kernels.Weights
	sched   *schedule.Schedule // nil: samples with edm
	basis   *basis.Basis       // of its schedule; nil where the family's name is enough

	mu      sync.Mutex
	holders int // 0: gone
	kernels map[*basis.Basis]*kernels.Model
}

// hold keeps the model's weights until release. It fails where the model has been unloaded or replaced.
func (m *model) hold() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.holders == 0 {
		return m.gone()
	}
	m.holders++
	return nil
}

func (m *model) gone() error {
	return api.Errorf(api.ModelNotFound, "The model %q was unloaded or replaced meanwhile", m.name).WithHint("Ask again.")
}

// release ends one hold.
func (m *model) release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.holders--
	if m.holders > 0 {
		return
	}
	m.weights.Release()
	for _, k := range m.kernels {
		k.Close()
	}
	m.kernels = nil
}

// mostBases bounds the bases a model is prepared for at a time: uploaded bases come and go.
const mostBases = 16

// on gives the programs of the model's network for a basis.
func (m *model) on(b *basis.Basis) (*kernels.Model, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.holders == 0 {
		return nil, m.gone()
	}
	if k, ok := m.kernels[b]; ok {
		return k, nil
	}
	net, err := m.stored.OnBasis(b)
	if err != nil {
		return nil, api.Errorf(api.BadRequest, "The model %q cannot have noise in the subspaces of that basis: %w", m.name, err)
	}
	k, err := kernels.NewModelAt(m.asked, m.dev, net, b)
	if err != nil {
		return nil, err
	}
	if len(m.kernels) < mostBases { // beyond, the collector frees it after its request
		m.kernels[b] = k
	}
	return k, nil
}

// imageSize gives height, width and channels.
func (m *model) imageSize() (h, w, c int) {
	return m.shape.Height, m.shape.Width, m.shape.Channels
}

// fits checks that a column holds images of the model's size and gives their layout.
func (m *model) fits(col api.Column) (pixels.Layout, error) {
	l, h, w, c, err := imageLayout(col)
	if err != nil {
		return "", err
	}
	mh, mw, mc := m.imageSize()
	if h != mh || w != mw || c != mc {
		return "", api.Errorf(api.BadTensor, "Column %q holds images of %d×%d pixels in %d channels, the model's have %d×%d in %d",
			col.Name, h, w, c, mh, mw, mc).WithHint("dim_names tell the order of the axes: [H W C] or [C H W].")
	}
	return l, nil
}

// ownSchedule gives the schedule that the model's name means.
func (m *model) ownSchedule() (namedSchedule, error) {
	if m.sched != nil {
		return namedSchedule{Schedule: m.sched, name: m.name, basis: m.basis}, nil
	}
	s, err := edmSchedule(api.DefaultT)
	return namedSchedule{Schedule: s, name: "edm"}, err
}

// metadata is what every reply that a model gave carries.
func (m *model) metadata(op string, request any) map[string]string {
	return metadata(op, request, "model", m.name, "version", itoa(m.version), "weights", m.hash)
}
