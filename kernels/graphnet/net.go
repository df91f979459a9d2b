// Package graphnet builds networks from a list of operations: the exported forward pass of a PyTorch module, with the
// module's names of its tensors (docs/networks.md).
//
// A config.json of model_type Graph has the sizes of images and classes and, as graph, a list of nodes in PyTorch's
// ATen operations: name, op, arguments, shape, type. Parse reads it within limits, refuses operations without a rule,
// and draws the whole graph once without a device. A rule appends one operation; rules.go lists them all. Rules use
// package nn if it has the operation. Images keep their channels last: a value is a node with an order of axes, so
// that a permutation in PyTorch moves no data.
//
// Begin reading at Parse, then value, then rules.
package graphnet

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/anisoflight/anisoflight/internal/base/normalization"
	"github.com/anisoflight/anisoflight/kernels"
	"github.com/anisoflight/anisoflight/kernels/nn"
	"github.com/anisoflight/anisoflight/schedule/basis"
)

// Net is a described network. Its parameters are those of its graph, in order, and the weights of the ratios. It is
// immutable and safe for concurrent use.
type Net struct {
	nn.Layout
	cfg     Config
	program *program
	key     string
}

var (
	_ kernels.RawNetwork = (*Net)(nil)
	_ kernels.Trainable  = (*Net)(nil)
)

// Parse returns the network of a config.json, which it decodes strictly and within limits. What cannot be used is a
// *[nn.ConfigError].
func Parse(config []byte) (*Net, error) {
	key := sha256.Sum256(config)
	if n, ok := known.Get(key); ok {
		return n, nil
	}
	if len(config) > maxText {
		return nil, nn.ConfigErrorf("", "must have at most %d bytes, got %d", maxText, len(config))
	}
	var c Config
	if err := nn.DecodeConfig(config, "a described network's fields", &c); err != nil {
		return nil, err
	}
	n, err := New(c)
	if err != nil {
		return nil, err
	}
	known.Add(key, n)
	return n, nil
}

// known has the networks that were parsed last, because a server lists its models often.
var known, _ = lru.New[[sha256.Size]byte, *Net](16)

// New returns the network of a configuration, or a *[nn.ConfigError].
func New(c Config) (*Net, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	p, err := readGraph(c.Graph)
	if err != nil {
		return nil, err
	}
	if err := p.checkKnown(); err != nil {
		return nil, err
	}
	if p.badType != nil {
		return nil, p.badType
	}
	n := &Net{cfg: c, program: p}
	if err := n.layOut(); err != nil {
		return nil, err
	}
	c.Normalization = nil // is no part of the graph
	config, err := json.Marshal(c)
	if err != nil {
		return nil, graphError("%v", err)
	}
	n.key = fmt.Sprintf("graph %x", sha256.Sum256(config))
	return n, draw(n)
}

// layOut lists the parameters.
func (n *Net) layOut() error {
	places := 0
	for _, o := range n.program.nodes {
		switch o.Op {
		case opParam:
			p := nn.Param{Name: o.Target, Frozen: o.Frozen || kinds[o.DType] != float}
			for _, d := range o.Shape {
				p.Shape = append(p.Shape, d.n)
			}
			p.Init = initializer(p)
			n.Layout = append(n.Layout, nn.Entry{Param: p})
		case opRatios:
			if i, ok := o.Args["index"].(float64); !ok || int(i) != places {
				return graphError("%s: index must be %d, its place among the operations of its kind", o.where(),
					places)
			}
			if len(o.Shape) != 2 || o.Shape[1].batch {
				return graphError("%s: shape must be that of an embedding [batch, E], got %v", o.where(), o.Shape)
			}
			if n.cfg.RatioEmbedding > 0 {
				n.Layout = append(n.Layout, nn.Entry{Param: nn.Param{
					Name: ratioWeight(places), Shape: []int{o.Shape[1].n, n.cfg.RatioEmbedding}, Optional: true,
				}})
			}
			places++
		}
	}
	if n.cfg.RatioEmbedding > 0 && places == 0 {
		return nn.ConfigErrorf("ratio_embedding",
			"this network has no place for the noise levels of subspaces; export it with ratios_at")
	}
	return nil
}

// MarshalJSON writes the config.json.
func (n *Net) MarshalJSON() ([]byte, error) { return json.Marshal(n.cfg) }

// Shape implements [kernels.Architecture].
func (n *Net) Shape() kernels.Shape {
	c := n.cfg
	return kernels.Shape{
		Type: c.ModelType, Height: c.ImgResolution.Height, Width: c.ImgResolution.Width, Channels: c.ImgChannels,
		Labels: c.LabelDim, Classes: slices.Clone(c.Classes), Parametrization: c.Parametrization.Kind(),
		Range: c.Parametrization.Range(), Normalization: c.Normalization.Clone(),
	}
}

// Normalized implements [kernels.Architecture].
func (n *Net) Normalized(a *normalization.Affine) kernels.Architecture {
	m := *n
	m.cfg.Normalization = a.Clone()
	return &m
}

// NetworkOn implements [kernels.Architecture]: the network serves every basis.
func (n *Net) NetworkOn([][]float32, *basis.Basis) (kernels.Network, error) { return n, nil }

// Spec implements [kernels.Network].
func (n *Net) Spec() kernels.Spec {
	c := n.cfg
	return kernels.Spec{
		Key: n.key, Height: c.ImgResolution.Height, Width: c.ImgResolution.Width, Channels: c.ImgChannels,
		Labels: c.LabelDim, Ratios: c.RatioEmbedding, Parametrization: c.Parametrization,
		Range: c.Parametrization.Range(),
	}
}

// Raw implements [kernels.RawNetwork].
func (n *Net) Raw(s *nn.Scope, z, noise, ratios, label *Node) *Node {
	b := &builder{
		p: n.program, g: z.Graph(), s: s, z: z, noise: noise, ratios: ratios,
		batch: z.Shape().Dimensions[0], wide: noise.DType(), values: make([]value, len(n.program.nodes)),
	}
	if label != nil {
		b.label = nn.DropRows(s, label, n.cfg.LabelDropout)
	}
	return b.build(n.cfg)
}

// Ratios implements [kernels.Trainable].
func (n *Net) Ratios() int { return n.cfg.RatioEmbedding }

// WithRatios implements [kernels.Trainable].
func (n *Net) WithRatios(ratios int) (kernels.Trainable, error) {
	c := n.cfg
	c.RatioEmbedding = ratios
	return New(c)
}

// initializer returns the distribution of a parameter's initial values, which a file does not have: N(0, 1/fan-in) for
// kernels and matrices, as in EDM, one for vectors named weight, otherwise zero.
func initializer(p nn.Param) nn.Initializer {
	switch {
	case p.Frozen:
		return nil
	case len(p.Shape) >= 2:
		return nn.Normal(1 / math.Sqrt(float64(max(p.Size()/p.Shape[0], 1))))
	case strings.HasSuffix(p.Name, "weight"):
		return nn.Ones
	}
	return nil
}

// ConditionsParam names the buffer [K, …] whose row k is the condition of label k, such as the embeddings of a prompt.
// If the input label has an index for no class, that is the last row, and there are K − 1 labels.
const ConditionsParam = "conditions"

// Conditions describes the table of conditions of a network.
type Conditions struct {
	Labels int   `json:"labels"` // rows that labels choose; 1 for a network without labels
	None   bool  `json:"none"`   // whether one more row stands for no class
	Shape  []int `json:"shape"`  // of a row
}

// Conditions returns the network's table, or nil if it has none.
func (n *Net) Conditions() *Conditions {
	for _, p := range n.Params() {
		if p.Name != ConditionsParam || !p.Frozen || len(p.Shape) < 2 {
			continue
		}
		rows, labels := p.Shape[0], max(1, n.cfg.LabelDim)
		if rows == labels || rows == labels+1 {
			return &Conditions{Labels: labels, None: rows > labels, Shape: slices.Clone(p.Shape[1:])}
		}
	}
	return nil
}
