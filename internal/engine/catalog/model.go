package catalog

import (
	"cmp"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anisoflight/anisoflight/flight/api"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/graphnet"
	"github.com/anisoflight/anisoflight/kernels/latent"
	"github.com/anisoflight/anisoflight/schedule"
	"github.com/anisoflight/anisoflight/schedule/basis"
	"github.com/anisoflight/anisoflight/schedule/solver"
	"github.com/anisoflight/anisoflight/train/checkpoint"
)

// Model is a model folder: its description, and its weights while they are loaded. The catalogue holds it once, and
// each request that uses it once more. The last release frees the weights.
type Model struct {
	Name     string
	Version  int    // counts what was saved under this name since the start
	Hash     string // of its weights
	Net      kernels.Architecture
	Shape    kernels.Shape
	Schedule *schedule.Schedule // nil: samples with edm
	Basis    *basis.Basis       // of its schedule; nil if the family's name is enough
	Unseen   []int32            // classes that had no images in training, increasing; they are not drawn

	catalog   *Catalog
	folder    string
	precision kernels.Precision         // that it was loaded for
	damage    atomic.Pointer[api.Error] // of the weights, as they were read last; nil for none
	used      atomic.Int64              // when it was last held, by the clock

	mu      sync.Mutex
	holders int              // 0: gone
	values  [][]float32      // of an analytic network once they are loaded: its axes decide on which bases it can be
	weights *kernels.Weights // nil while nobody needs them
	kernels map[*basis.Basis]*kernels.Model
}

// DrawLabel returns the class that a seed draws among those that had images in training; −1 without classes.
func (m *Model) DrawLabel(seed uint64) int32 {
	classes := m.Shape.Labels - len(m.Unseen)
	if classes <= 0 {
		return -1
	}
	label := latent.Label(seed, classes)
	for _, unseen := range m.Unseen {
		if unseen <= label {
			label++
		}
	}
	return label
}

// analytic reports whether a network's values are needed on the host and its precision is float32 whatever is asked.
func (m *Model) analytic() bool {
	_, learns := m.Net.(kernels.Trainable)
	return !learns
}

// Hold loads the model's weights onto the device if they are not there, and keeps them until Release. It fails if the
// model has been unloaded or replaced.
func (m *Model) Hold() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.holders == 0 {
		return m.gone()
	}
	if err := m.load(); err != nil {
		return err
	}
	m.holders++
	m.used.Store(time.Now().UnixNano())
	return nil
}

// Release ends one hold.
func (m *Model) Release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.holders--
	if m.holders > 0 {
		return
	}
	m.free()
	for _, k := range m.kernels {
		k.Close()
	}
	m.kernels, m.values = nil, nil
}

// WeightsFile returns the path of the model's weights.
func (m *Model) WeightsFile() string { return checkpoint.WeightsFile(m.folder) }

// Weights returns the weights of a model that is held.
func (m *Model) Weights() *kernels.Weights { return m.weights }

func (m *Model) gone() error {
	return api.Errorf(api.ModelNotFound, "The model %q was unloaded or replaced meanwhile", m.Name).WithHint("Ask again.")
}

// checkedRead runs read and records damage. It returns an error if the hash differs from the folder's. The caller holds
// mu.
func (m *Model) checkedRead(read func() (hash string, err error)) error {
	hash, err := read()
	if err != nil {
		damage := notRead("model", m.Name, err)
		if damage.Code == api.Damaged {
			m.damage.Store(damage)
		}
		return damage
	}
	m.damage.Store(nil)
	if hash != m.Hash {
		return api.Errorf(api.BadModel, "The folder of the model %q has changed", m.Name).
			WithHint("UnloadModel and LoadModel it.")
	}
	return nil
}

// read reads the folder. The caller holds mu.
func (m *Model) read() (model *checkpoint.Model, err error) {
	err = m.checkedRead(func() (string, error) {
		if model, err = checkpoint.LoadModel(m.folder); err != nil {
			return "", err
		}
		if m.analytic() {
			m.values = model.Values
		}
		return model.Hash, nil
	})
	return model, err
}

// load makes sure that the weights are on the device. The caller holds mu.
func (m *Model) load() error {
	if m.weights != nil {
		return nil
	}
	if err := m.catalog.makeRoom(4 * int64(m.Net.ParamCount())); err != nil {
		return err
	}
	network, err := m.network(nil)
	if err != nil {
		return err
	}
	if m.analytic() {
		m.weights, err = network.Upload(m.values)
	} else {
		m.weights, err = network.UploadEach(func(put func(i int, values []float32)) error {
			return m.checkedRead(func() (string, error) { return checkpoint.ReadWeights(m.folder, m.Net, put) })
		})
	}
	return err
}

// makeRoom unloads models that no request holds, the least recently used first, until the weights of a model fit, and
// as many bytes for its programs.
func (c *Catalog) makeRoom(bytes int64) error {
	dev, err := c.cfg.Device()
	if err != nil {
		return err
	}
	short := func() bool {
		available, limited := dev.Available()
		return limited && available < 2*bytes
	}
	models := c.Models()
	slices.SortFunc(models, func(a, b *Model) int { return cmp.Compare(a.used.Load(), b.used.Load()) })
	for _, m := range models {
		if short() && m.unload() {
			c.cfg.Logger.Info("model unloaded, since memory is short", "model", m.Name)
		}
	}
	return nil
}

// unload frees the weights if no request holds them. It does not wait for one that uses the model.
func (m *Model) unload() bool {
	if !m.mu.TryLock() {
		return false
	}
	defer m.mu.Unlock()
	return m.holders <= 1 && m.free()
}

// free frees the weights, and reports whether they were loaded.
func (m *Model) free() bool {
	if m.weights == nil {
		return false
	}
	m.weights.Release()
	m.weights = nil
	return true
}

// mostBases limits the bases whose programs a model keeps: uploaded bases come and go.
const mostBases = 16

// IsotropicNetwork returns the programs of the model's network for isotropic noise.
func (m *Model) IsotropicNetwork() (*kernels.Model, error) { return m.NetworkOn(nil) }

// NetworkOn returns the programs of the model's network for noise in the subspaces of b; nil means isotropic noise.
func (m *Model) NetworkOn(b *basis.Basis) (*kernels.Model, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.network(b)
}

// network is NetworkOn. The caller holds mu.
func (m *Model) network(b *basis.Basis) (*kernels.Model, error) {
	if m.holders == 0 {
		return nil, m.gone()
	}
	var err error
	if b == nil {
		b, _, err = m.catalog.Formula(schedule.Family{Basis: "none"}, m.Shape.Height, m.Shape.Width)
		if err != nil {
			return nil, err
		}
	}
	if k, ok := m.kernels[b]; ok {
		return k, nil
	}
	if m.analytic() && m.values == nil {
		if _, err := m.read(); err != nil {
			return nil, err
		}
	}
	dev, err := m.catalog.cfg.Device()
	if err != nil {
		return nil, err
	}
	net, err := m.Net.NetworkOn(m.values, b)
	if err != nil {
		return nil, api.Errorf(api.BadRequest, "The model %q cannot have noise in the subspaces of that basis: %w", m.Name,
			err)
	}
	k, err := kernels.NewModelAt(m.precision, dev, net, b)
	if err != nil {
		return nil, err
	}
	if len(m.kernels) == 0 {
		sizes := k.Buckets()
		m.catalog.cfg.Logger.Info("evaluates in batches", "model", m.Name, "small", sizes.Small, "large", sizes.Large)
	}
	if len(m.kernels) < mostBases { // beyond, the collector frees it after its request
		m.kernels[b] = k
	}
	return k, nil
}

// ImageSize returns height, width and channels.
func (m *Model) ImageSize() (h, w, c int) {
	return m.Shape.Height, m.Shape.Width, m.Shape.Channels
}

// ReadWithValues reads the model with the values of its weights.
func (m *Model) ReadWithValues() (*checkpoint.Model, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.holders == 0 {
		return nil, m.gone()
	}
	return m.read()
}

// Describe describes the model as lists do.
func (m *Model) Describe() api.ModelInfo {
	precision := m.precision
	if m.analytic() {
		precision = kernels.Float32
	}
	info := api.ModelInfo{
		Name: m.Name, Version: m.Version, Hash: m.Hash,
		Type: m.Shape.Type, Resolution: m.Shape.Height, Channels: m.Shape.Channels, LabelDim: m.Shape.Labels,
		Classes: m.Shape.Classes, Parameters: m.Net.ParamCount(),
		Precision: string(precision), Parametrization: m.Shape.Parametrization,
		SigmaMin: m.Shape.Range.Min, SigmaMax: m.Shape.Range.Max,
		Normalization: m.Shape.Normalization,
		Integrity:     api.Integrity{State: api.Intact},
	}
	if net, ok := m.Net.(*graphnet.Net); ok {
		if table := net.Conditions(); table != nil {
			info.Conditions = &api.ConditionsInfo{Labels: table.Labels, None: table.None, Shape: table.Shape}
		}
	}
	if damage := m.damage.Load(); damage != nil {
		info.Integrity = damagedBy(damage)
	}
	if m.Shape.Width != m.Shape.Height {
		info.Width = m.Shape.Width
	}
	if m.Schedule != nil {
		own := describeSchedule("model", Schedule{Parts: Parts{Schedule: m.Schedule, Basis: m.Basis}, Name: m.Name})
		info.Schedule = &own
	}
	return info
}

// G0 returns the variance at which a schedule for the model begins: g0, or the model's own if g0 is 0 or the default.
func (m *Model) G0(g0 float64) float64 {
	if g0 == 0 || g0 == schedule.DefaultG0 {
		return m.Shape.Range.G0()
	}
	return g0
}

// CheckRange refuses a schedule with noise levels that the network was not trained on.
func (m *Model) CheckRange(s Schedule) error {
	err := s.Check(m.Shape.Range)
	if err == nil {
		return nil
	}
	advice := "Make one"
	if p := s.Provenance(); p != nil && p.Kind == "start" { // which has the ends of the schedule that it is made from
		advice = "Make one from a schedule of kind edm"
	}
	return api.Errorf(api.BadRequest, "The schedule %q does not suit the model %q: %w", s.Name, m.Name, err).
		WithHint("%s with T = %.9g and g0 = %.9g, or take the schedule edm.", advice, m.Shape.Range.T(), m.Shape.Range.G0())
}

// OnLevels adapts a grid and a schedule to a model with noise levels of its own: the grid's defaults become the model's
// levels, and the schedule ends without noise, so that samplers return the image.
func (m *Model) OnLevels(g api.Grid, s Schedule) (api.Grid, Schedule, error) {
	levels := m.Shape.Range
	if !levels.Known() {
		return g, s, nil
	}
	lo, hi := levels.Ends()
	unset := g.Kind == api.GridLogSNR
	if unset && g.SigmaMin == 0 || g.SigmaMin == schedule.DefaultSigmaMin {
		g.SigmaMin = max(lo, s.Sigma(0, 0))
	}
	if unset && g.SigmaMax == 0 || g.SigmaMax == schedule.DefaultSigmaMax {
		g.SigmaMax = min(hi, s.Sigma(0, s.T()))
	}
	if levels.G0() == schedule.DefaultG0 {
		return g, s, nil
	}
	var err error
	s.Schedule, err = s.ToZero()
	return g, s, err
}

// CheckPlan refuses a plan that evaluates the network at noise levels that it was not trained on.
func (m *Model) CheckPlan(p *solver.Plan) error {
	for _, stage := range p.Stages {
		for _, g := range stage.G {
			if !m.Shape.Range.Holds(g) {
				lo, hi := m.Shape.Range.Ends()
				return api.Errorf(api.BadRequest,
					"The sampler evaluates the model %q at noise level %.6g, outside of %.6g … %.6g, "+
						"those that it was trained on", m.Name, math.Sqrt(g), lo, hi).
					WithHint("Leave sigma_min, sigma_max and lists of noise levels to the model, or keep within.")
			}
		}
	}
	return nil
}
