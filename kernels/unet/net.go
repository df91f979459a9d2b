package unet

import (
	"github.com/gomlx/gomlx/pkg/core/graph"

	"github.com/anisoflight/anisoflight/kernels/nn"
)

// Net is the shape of one network: its parameters and the graph it appends. It
// holds no values, and it is immutable and safe for concurrent use.
type Net struct{ cfg Config }

// New returns the network of a configuration.
func New(cfg Config) (*Net, error) { return &Net{cfg: cfg}, nil }

// Config returns the configuration the network was made from.
func (n *Net) Config() Config { return n.cfg }

// WithDropout returns the same network with another dropout rate in training.
func (n *Net) WithDropout(rate float64) *Net { m := *n; m.cfg.Dropout = rate; return &m }

// Params returns the parameters in the order of EDM's state dict.
func (n *Net) Params() []nn.Param { return nil }

// ParamCount returns the number of trained scalars.
func (n *Net) ParamCount() int { return 0 }

// Init draws initial values as EDM does, in PyTorch's layout and the order of
// Params. Each tensor has its own random stream derived from seed and its name.
func (n *Net) Init(seed uint64) [][]float32 { return nil }

// Tensor is one entry of a state dict, in PyTorch's layout.
type Tensor struct {
	Name  string
	Shape []int
	Data  []float32
}

// Load picks the values of Params out of a state dict. Buffers that EDM stores
// beside the parameters are accepted and checked; anything missing, superfluous
// or of another shape is a *StateError.
func (n *Net) Load(state []Tensor) ([][]float32, error) { return nil, nil }

// State returns the full state dict of the values, buffers included, in EDM's
// order. The values are not copied.
func (n *Net) State(values [][]float32) []Tensor { return nil }

// Buffers returns the constant tensors that EDM keeps in its state dict.
func (n *Net) Buffers() []Tensor { return nil }

// Apply appends the raw network
//
//	F(x, noise, ratios, label, augment)
//
// to the graph and returns F, shaped as x.
//
//	x       [B, H, W, C]  scaled input
//	noise   [B]           noise label, ln(σ)/4 in EDM
//	ratios  [B, J−1]      log-ratio labels, or nil for zeros
//	label   [B, L]        one-hot class labels, or nil for none (zeros)
//	augment [B, A]        augmentation labels, or nil for none
func (n *Net) Apply(s *nn.Scope, x, noise, ratios, label, augment *graph.Node) *graph.Node { return x }
